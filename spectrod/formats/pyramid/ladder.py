"""The levels of a pyramid: length of their cells, and mapping of cells to files."""

from spectrod.lib.errors import ConfigError

_S = 10**9
_DAY = 86400 * _S

CELLS_NS = (
    _S // 100,
    _S // 20,
    _S // 4,
    _S,
    5 * _S,
    15 * _S,
    60 * _S,
    300 * _S,
    900 * _S,
    3600 * _S,
    14400 * _S,
    _DAY,
)
"""Each divides the next, and all divide a day, so that cells begin at minutes, hours and days of
UTC. Lengths grow by factors of three to six, so all coarser levels together add a third of the
size of the finest: 1/5 + 1/15 + 1/60 + ..."""

_NAMES = ("10ms", "50ms", "250ms", "1s", "5s", "15s", "1min", "5min", "15min", "1h", "4h", "1d")


def levels(finest_s: float, row_s: float) -> tuple[int, ...]:
    """Choose the lengths of cells.

    Parameters
    ----------
    finest_s : float
        Wanted length of the finest cells, > 0 [s]; the next longer available one is chosen.
    row_s : float
        Time from one row of spectra to the next [s]; shorter cells would mostly be empty.

    Returns
    -------
    cells_ns : tuple of int
        Ascending, the last a day [ns].

    Raises
    ------
    ConfigError
        If a length is more than a day, or not positive.
    """
    if not finest_s > 0.0:
        raise ConfigError(f"finest_s={finest_s:g}: must be a positive number of seconds")
    # A row exactly as long as a cell may exceed it by a rounding error.
    least_ns = max(finest_s, row_s) * _S * (1.0 - 1e-9)
    if least_ns > CELLS_NS[-1]:
        longest = "finest_s" if finest_s > row_s else "rows of"
        raise ConfigError(f"{longest} {max(finest_s, row_s):g} s: must be at most a day")
    return tuple(cell for cell in CELLS_NS if cell >= least_ns)


def name_of(cell_ns: int) -> str:
    """Return the name of a level, which is that of its folder."""
    return _NAMES[CELLS_NS.index(cell_ns)]


def file_cells(cell_ns: int) -> int:
    """Return the number of cells in a file: those of a day, a month or ten years.

    So there are few files, and expired cells can still be deleted in parts.
    """
    if cell_ns <= 60 * _S:
        return _DAY // cell_ns
    return (30 if cell_ns <= 3600 * _S else 3600) * _DAY // cell_ns
