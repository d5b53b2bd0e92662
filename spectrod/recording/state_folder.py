"""Where recordings go."""

import os
from pathlib import Path


def state_folder(wanted: str) -> Path:
    """Say where a daemon keeps what lasts: as configured, systemd's state folder, or the user's."""
    if wanted:
        return Path(wanted)
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        return Path(given)
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if home.startswith("/") else Path.home() / ".local" / "state"
    return base / "spectrod"
