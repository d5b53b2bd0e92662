"""Names that are safe in topics."""

import re

_LENGTH_MAX = 64


def topic_name(text: str) -> str:
    """Make a topic part of any text: letters, digits, ``. _ -``; never empty, 64 at most."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")
    return name[:_LENGTH_MAX].rstrip("-") or "source"
