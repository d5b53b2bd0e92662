"""How a transform is cut into passes."""

from spectrod.errors import ConfigError

PASSES_MAX = 4
"""Most passes that ``stft_power.cl`` has."""

_HALF_MIN, _HALF_MAX = 32, 8**PASSES_MAX


def choose_radices(half: int) -> tuple[int, ...]:
    """Radices of the passes of a complex transform, in the order in which they run.

    As many passes of radix 8 as leave 1, 4 or 16. A single pass of radix 4 runs first and two run
    last: so it was fastest on CPUs, see ``kernels/README.md``. Radix 2 is never better than two
    passes of radix 4 in place of 8 and 2.

    Parameters
    ----------
    half : int
        Length of the complex transform, a power of two from 32 to 4096: half of nfft.

    Returns
    -------
    radices : tuple of int
        Two to four, each 4 or 8; their product is ``half``.

    Raises
    ------
    ConfigError
        If half is out of range or no power of two.
    """
    log2 = half.bit_length() - 1
    if not _HALF_MIN <= half <= _HALF_MAX or half != 1 << log2:
        raise ConfigError(
            f"half={half}: must be a power of two, {_HALF_MIN} to {_HALF_MAX}, half of nfft"
        )
    eights, rest = divmod(log2, 3)
    if rest == 0:
        return (8,) * eights
    return (4,) + (8,) * eights if rest == 2 else (8,) * (eights - 1) + (4, 4)
