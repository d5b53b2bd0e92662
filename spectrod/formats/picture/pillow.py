"""Reading with Pillow what others may have made or damaged."""

import contextlib
import warnings
from collections.abc import Iterator

from PIL import UnidentifiedImageError

from spectrod.errors import InputError, SpectrodError


@contextlib.contextmanager
def reading(unidentified: str, otherwise: str = "") -> Iterator[None]:
    """Turn what Pillow raises of a damaged file into InputError, and silence what it warns of.

    Only calls of Pillow belong inside: it names no set of exceptions, and IndexError, KeyError,
    SyntaxError, struct.error and zlib.error come from its decoders as well as OSError.

    Parameters
    ----------
    unidentified : str
        What to say where it finds none of the formats that were asked for: its own text names an
        object in memory.
    otherwise : str
        What to say before its reason.

    Raises
    ------
    InputError
        Of one line.
    """
    try:
        with warnings.catch_warnings():
            # Of many pixels, which are checked, and of chunks that Pillow leaves out.
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
