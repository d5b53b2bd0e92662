"""Text files that are written as a whole or not at all."""

import os
from pathlib import Path

from spectrod.formats.part import PartFile
from spectrod.lib.errors import SpectrodError, storage_error


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    part = PartFile(path)
    try:
        with os.fdopen(part.create(), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.publish()
    except OSError as error:
        part.remove()
        raise storage_error(path, error) from error
    except SpectrodError:
        part.remove()
        raise
    finally:
        part.close()
