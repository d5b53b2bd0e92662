"""Sources of samples: one function opens them all."""

from pathlib import Path

from spectrod.config.config import Pace, SourceConfig, SourceTable
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.lib.names import check_name
from spectrod.source.base import SelectableSource, Source
from spectrod.source.channels import select_channels
from spectrod.source.kinds import FILES, find_kind, uri_of

__all__ = ["Pace", "Source", "check_uri", "open_source", "specs_of"]


def open_source(settings: SourceConfig, pace: Pace | None = None) -> Source:
    """Create the source that a URI names; it delivers samples after ``start``.

    Parameters
    ----------
    settings : SourceConfig
        ``default.toml`` describes the forms of its ``uri``.
    pace : {"realtime", "full"}, optional
        Overrides ``settings.pace``. Used by files and test signals only: sound cards and pipes have
        a pace of their own.

    Returns
    -------
    source : Source
        Its sample rate is known; its channels are the selected ones.

    Raises
    ------
    ConfigError, InputError, UnavailableError
        If the URI is malformed, the file is unusable or the device is missing.
    """
    kind, argument = find_kind(settings.uri)
    try:
        source = kind.open(settings, argument, pace or settings.pace)
    except (ConfigError, UnavailableError) as error:
        if kind is FILES or not Path(settings.uri).is_file():
            raise
        kind_of_error = ConfigError if isinstance(error, ConfigError) else UnavailableError
        hint = f"the file of this name is {uri_of(settings.uri)}"
        raise kind_of_error(f"{error}; {hint}") from error
    if isinstance(source, SelectableSource):
        source.select(select_channels(settings, source.channels))
    source.is_iq |= settings.is_iq
    source.center_frequency_hz = settings.center_frequency_hz or source.center_frequency_hz
    if source.center_frequency_hz and not source.is_iq:
        raise ConfigError(
            f"source.center_frequency_hz={source.center_frequency_hz:.15g}: needs I/Q samples: "
            "iq, or a format such as cu8"
        )
    if settings.name:
        source.name = check_name("source.name", settings.name)
    return source


def check_uri(settings: SourceConfig) -> None:
    """Check the syntax of a URI without opening a file or a device.

    Raises
    ------
    ConfigError
        If the URI is malformed.
    """
    kind, argument = find_kind(settings.uri)
    kind.check(settings, argument)


def specs_of(table: SourceTable, source: Source) -> tuple[SpectrumSpec, ...]:
    """Return the specs of all analyses of an open source; raises like ``SourceTable.specs``."""
    return table.specs(
        source.fs,
        source.channels,
        is_iq=source.is_iq,
        center_frequency_hz=source.center_frequency_hz,
    )
