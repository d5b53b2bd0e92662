"""The levels of a pyramid: how long a cell of each is, and which file holds it."""

from spectrod.errors import ConfigError

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
"""Each divides the next, and all divide a day, so that cells begin with minutes, hours and days of
UTC. Three to six times as long as the one before, they take a third more room than the finest
alone: 1/5 + 1/15 + 1/60 + ... of it."""

_NAMES = ("10ms", "50ms", "250ms", "1s", "5s", "15s", "1min", "5min", "15min", "1h", "4h", "1d")


def levels(finest_s: float, row_s: float) -> tuple[int, ...]:
    """Choose the lengths of cells.

    Parameters
    ----------
    finest_s : float
        Wanted of the finest, > 0 [s]; the next longer one there is, is taken.
    row_s : float
        From one row of spectra to the next [s]; no cell is shorter, most would be empty.

    Returns
    -------
    cells_ns : tuple of int
        Ascending, the last a day [ns].

    Raises
    ------
    ConfigError
        If that is more than a day, or not positive.
    """
    if not finest_s > 0.0:
        raise ConfigError(f"finest_s={finest_s:g}: must be a positive number of seconds")
    # A row of exactly a cell's length may come out a rounding error longer.
    least_ns = max(finest_s, row_s) * _S * (1.0 - 1e-9)
    if least_ns > CELLS_NS[-1]:
        longest = "finest_s" if finest_s > row_s else "rows of"
        raise ConfigError(f"{longest} {max(finest_s, row_s):g} s: must be at most a day")
    return tuple(cell for cell in CELLS_NS if cell >= least_ns)


def name_of(cell_ns: int) -> str:
    """Name a level, as its folder is called."""
    return _NAMES[CELLS_NS.index(cell_ns)]


def file_cells(cell_ns: int) -> int:
    """Count the cells that a file has room for: of a day, a month or ten years.

    Few files, and yet what has become too old goes in pieces.
    """
    if cell_ns <= 60 * _S:
        return _DAY // cell_ns
    return (30 if cell_ns <= 3600 * _S else 3600) * _DAY // cell_ns
