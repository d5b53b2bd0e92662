"""How a transform is cut into passes."""

from spectrod.errors import ConfigError

PASSES_MAX = 4
"""Most passes that ``stft_power.cl`` has."""

_HALF_MIN, _HALF_MAX = 32, 8**PASSES_MAX


def choose_radices(half: int) -> tuple[int, ...]:
    """Radices of the passes of a complex transform, in the order in which they run.

    Passes of radix 8 while 8, 4 or 16 can be left over, then radix 4. Two passes of radix 4 do the
    work of one of radix 8 and one of radix 2 with fewer multiplications.

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
    if rest == 1:
        return (8,) * (eights - 1) + (4, 4)
    return (8,) * eights + (4,) * (rest == 2)
