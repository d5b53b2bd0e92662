"""Reading of possibly damaged pictures with Pillow."""

import contextlib
import warnings
from collections.abc import Iterator

from PIL import UnidentifiedImageError

from spectrod.lib.errors import InputError, SpectrodError


@contextlib.contextmanager
def reading(unidentified: str, otherwise: str = "") -> Iterator[None]:
    """Convert Pillow's exceptions for damaged files to InputError, and suppress its warnings.

    Call only Pillow inside: it documents no set of exceptions, and its decoders raise IndexError,
    KeyError, SyntaxError, struct.error and zlib.error as well as OSError.

    Parameters
    ----------
    unidentified : str
        Text of the error if the file has none of the requested formats; Pillow's own text names an
        object in memory.
    otherwise : str
        Text before Pillow's reason in other errors.

    Raises
    ------
    InputError
        With a text of one line.
    """
    try:
        with warnings.catch_warnings():
            # Warnings of large images, whose size is checked, and of skipped chunks.
            warnings.simplefilter("ignore")
            yield
    except SpectrodError:
        raise
    except UnidentifiedImageError:
        raise InputError(unidentified) from None
    # Damaged files make Pillow raise IndexError, AttributeError, struct.error and others.
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(f"{otherwise}{' '.join(reason.split())}") from error
