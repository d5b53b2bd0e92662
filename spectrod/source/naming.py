"""Names that are safe in topics."""

import re


def topic_name(text: str) -> str:
    """Make a topic part of any text: letters, digits, ``. _ -``; never empty."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-") or "source"
