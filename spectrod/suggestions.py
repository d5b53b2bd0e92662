"""What somebody may have meant by a name that is unknown."""

import difflib
from collections.abc import Iterable

_CUTOFF = 0.6
_LENGTH_MAX = 100
"""Longest name that is compared: the time grows with the square of it [characters]."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is most like an unknown one.

    Parameters
    ----------
    name : str
        That is not known.
    known : iterable of str
        All that are.

    Returns
    -------
    text : str
        ``"; did you mean NAME?"`` to end an error with; empty where no name is alike.
    """
    if len(name) > _LENGTH_MAX:
        return ""
    # Names that differ in case and in signs between words alone are the same to who types them.
    by_plain = {_plain(one): one for one in known}
    found = difflib.get_close_matches(_plain(name), by_plain, n=1, cutoff=_CUTOFF)
    return f"; did you mean {by_plain[found[0]]}?" if found else ""


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
