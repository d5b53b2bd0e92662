"""Suggestions for unknown names."""

from collections.abc import Iterable

_CUTOFF = 0.6
_LENGTH_MAX = 100
"""Longest name that is compared: the time grows with its square [characters]."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is most similar to an unknown one.

    Parameters
    ----------
    name : str
        The unknown name.
    known : iterable of str
        All known names.

    Returns
    -------
    text : str
        ``"; did you mean NAME?"`` to append to an error; empty if no name is similar.
    """
    if len(name) > _LENGTH_MAX:
        return ""
    import difflib  # noqa: PLC0415 - 1 ms, of errors alone

    # Ignore case and the characters between words, which people often mistype.
    by_plain = {_plain(one): one for one in known}
    found = difflib.get_close_matches(_plain(name), by_plain, n=1, cutoff=_CUTOFF)
    return f"; did you mean {by_plain[found[0]]}?" if found else ""


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
