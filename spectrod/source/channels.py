"""Selection of a source's channels."""

from spectrod.config.config import SourceConfig
from spectrod.lib.errors import ConfigError


def select_channels(settings: SourceConfig, available: int) -> tuple[int, ...]:
    """Return the channels that ``settings.select`` lists, in its order.

    Parameters
    ----------
    settings : SourceConfig
        An empty ``select`` means all channels.
    available : int
        Number of channels of the source, numbered from 0.

    Returns
    -------
    numbers : tuple of int
        At least one channel, without duplicates.

    Raises
    ------
    ConfigError
        If a number is out of range or occurs twice.
    """
    selected = settings.select or tuple(range(available))
    seen: set[int] = set()
    for number in selected:
        if not 0 <= number < available:
            has = "channel 0 alone" if available == 1 else f"channels 0 to {available - 1}"
            raise ConfigError(f"source.select={number}: the source has {has}")
        if number in seen:
            raise ConfigError(f"source.select={number}: must not come twice")
        seen.add(number)
    return selected
