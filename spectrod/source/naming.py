"""Names that are safe in topics."""

import re

_LENGTH_MAX = 64


def topic_name(text: str) -> str:
    """Convert any text to a topic part: letters, digits, ``. _ -``; 1 to 64 characters."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")
    return name[:_LENGTH_MAX].rstrip("-") or "source"
