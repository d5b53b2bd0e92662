"""Text files that other programs read at any time: replaced as a whole."""

import contextlib
import os
import tempfile
from pathlib import Path

from spectrod.formats.path_links import written_path
from spectrod.lib.errors import storage_error

_MODE = 0o644


def replace_text(path: Path, text: str) -> None:
    """Write a file, or replace it, at once: no reader ever sees a part of the text.

    Unlike ``text_file.write_text``, a file that a killed process left behind is no obstacle, and
    any user may read the file.

    Parameters
    ----------
    path : Path
        A link is followed, see ``written_path``.
    text : str

    Raises
    ------
    StorageError
        If it cannot be written; an old file is unchanged then.
    """
    target = written_path(path)
    unfinished = None
    try:
        # The name has another suffix than the file: collectors read all files of one suffix.
        descriptor, unfinished = tempfile.mkstemp(".part", f".{target.name}.", target.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(descriptor, _MODE)
            os.fsync(descriptor)
        Path(unfinished).replace(target)
    except OSError as error:
        if unfinished is not None:
            with contextlib.suppress(OSError):
                Path(unfinished).unlink()
        raise storage_error(path, error) from error
