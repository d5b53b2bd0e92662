"""Text files that are written as a whole or not at all."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spectrod.dsp.units import Float64Array
from spectrod.formats.part import PartFile
from spectrod.lib.errors import SpectrodError, storage_error
from spectrod.lib.text import printable


def columns_text(
    about: Mapping[str, Any], names: Sequence[str], columns: Sequence[Float64Array]
) -> str:
    """Return the text of a CSV file: comments, names, and a row for each place of the columns."""
    return "".join(f"{line}\n" for line in _lines(about, names, columns))


def _lines(
    about: Mapping[str, Any], names: Sequence[str], columns: Sequence[Float64Array]
) -> Iterator[str]:
    yield from (f"# {key}: {printable(str(value))}" for key, value in about.items())
    yield ",".join(names)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield ",".join(f"{one:.9g}" if math.isfinite(one) else "" for one in row)


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
