"""Default folder of recordings."""

import os
from pathlib import Path


def state_folder(configured: str) -> Path:
    """Return the configured folder, systemd's state folder, or that of the user."""
    if configured:
        return Path(configured)
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        return Path(given)
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if home.startswith("/") else Path.home() / ".local" / "state"
    return base / "spectrod"
