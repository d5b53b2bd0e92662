"""``config check --deep``: opens everything that a configuration names."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from spectrod.analysis.engine import open_engine
from spectrod.cli.daemon_rules import check_folder, source_name
from spectrod.config.config import Config, SourceTable
from spectrod.daemon.access.access import Access
from spectrod.daemon.demand import Demand
from spectrod.daemon.live_triggers import LiveTriggers
from spectrod.daemon.metered_source import MeteredSource
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import SpectrodError
from spectrod.lib.events import EventLog
from spectrod.measure.triggers.trigger_config import MASKS_FOLDER
from spectrod.recording.expected_size import space_text
from spectrod.recording.state_folder import state_folder
from spectrod.source.kinds import find_kind
from spectrod.source.open_source import Source, open_source, specs_of

_RECORDINGS_FOLDER = "recordings"

Check = Callable[[], str]
"""Opens one resource and returns a description; raises a SpectrodError."""


def checks(config: Config) -> Iterator[Check]:
    """Yield a check for each named resource: sources, engine, folders, keys."""
    for table in config.all_sources:
        name = source_name(config, table)
        yield partial(_about, name, partial(_source, config, table))
        if table.triggers:
            yield partial(_about, name, partial(_masks, config, table))
        if table.calibration:
            yield partial(_about, name, partial(_calibration, table))
    yield partial(_about, "engine", partial(_engine, config))
    for folder, name in _folders(config):
        yield partial(check_folder, folder, name)
    yield partial(_about, "security", partial(_keys, config))


def _about(what: str, check: Check) -> str:
    """Let the description, or the error, of a check begin with what it is about."""
    try:
        return f"{what}: {check()}"
    except SpectrodError as error:
        raise error.of(what) from error


def _masks(config: Config, table: SourceTable) -> str:
    """Read the learned masks that triggers name."""
    _triggers(config).check_masks(table)
    return f"triggers: {', '.join(one.name for one in table.triggers)}"


def _triggers(config: Config) -> LiveTriggers:
    return LiveTriggers(EventLog(), state_folder(config.control.state_folder) / MASKS_FOLDER)


def _source(config: Config, table: SourceTable) -> str:
    """Open a source whose samples can be read again, and check its analyses at its rate."""
    kind, argument = find_kind(table.uri)
    if text := kind.inspect(argument):
        return text
    source = open_source(table, "full")
    specs = specs_of(table, source)
    _triggers(config).open(table, specs)
    products = ", ".join(spec.product for spec in specs)
    text = (
        f"{source.description}: {source.fs:.10g} Hz, channels: {source.channels}, "
        f"products: {products}{''.join(_sizes(config, table, source, specs))}"
    )
    left_out = source.left_out
    if not left_out.n_files:
        return text
    return f"{text}; files left out or read in part: {left_out.n_files}, first {left_out.lines[0]}"


def _sizes(
    config: Config, table: SourceTable, source: Source, specs: Sequence[SpectrumSpec]
) -> Iterator[str]:
    """Yield what each recording of a source needs, as the daemon reports when it starts it."""
    meters = MeteredSource(source, table, Demand(), lambda *_: None).meters()
    measured = {meter.name: meter.about for meter in meters}
    found = {spec.product: spec for spec in specs} | dict.fromkeys(measured, specs[0])
    name = table.name or source.name
    for recording in config.recordings:
        product = recording.product or specs[0].product
        if product in found and name in (recording.sources or (name,)):
            size = space_text(recording, found[product], measured.get(product))
            yield f"; recording {recording.name}: {size}"


def _calibration(table: SourceTable) -> str:
    table.check_calibration()
    return f"calibration {table.calibration}: can be read"


def _engine(config: Config) -> str:
    requested = config.engine
    engine = open_engine(requested.engine, requested.device)
    try:
        return engine.name
    finally:
        engine.close()


def _folders(config: Config) -> Iterator[tuple[Path, str]]:
    state = state_folder(config.control.state_folder)
    if config.control.endpoints:
        yield state, "control.state_folder"
    for recording in config.recordings:
        name = f"recordings.{recording.name}.folder"
        yield Path(recording.folder) if recording.folder else state / _RECORDINGS_FOLDER, name


def _keys(config: Config) -> str:
    access = Access(config.security)
    try:
        return "keys can be read" if access.has_keys else "no keys"
    finally:
        access.close()
