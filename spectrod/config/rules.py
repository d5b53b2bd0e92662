"""Rules between settings: checks of whole tables, and of tables against each other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from spectrod.config.layers import (
    NAMED,
    PRODUCTS,
    RECORDINGS,
    SECTIONS,
    SOURCES,
    TRIGGERS,
    Layer,
    Mistakes,
    Place,
    Settings,
    TableCheck,
    broken_keys,
    prefix_of,
    setting_layer,
)
from spectrod.config.settings import (
    AnalysisConfig,
    Config,
    ProductConfig,
    RecordingConfig,
    SourceTable,
    check_folder_names,
)
from spectrod.config.toml_text import Path
from spectrod.lib.errors import ConfigError
from spectrod.lib.names import check_channel_names, check_name, find_product, name_channels
from spectrod.lib.suggestions import did_you_mean
from spectrod.lib.time_format import check_time_format
from spectrod.lib.time_zones import find_zone
from spectrod.measure.kinds import KINDS
from spectrod.measure.measurement_config import MeasurementConfig
from spectrod.measure.triggers.trigger_config import RECORDER_TRIGGERS, TRIGGERS_MAX, TriggerConfig
from spectrod.wire.endpoint import (
    Endpoint,
    check_bindable,
    parse_endpoint,
    parse_listen,
    parse_raw32,
)

Rules = Callable[[Config], Iterable[tuple[Path, str]]]
"""More checks of a configuration: yields the path of a setting, and the broken rule."""
_Products = Mapping[str, tuple[str, ...] | None]
"""Names of the products of each source; None after a mistake."""


def merge(
    settings: Settings, layers: Sequence[Layer], mistakes: Mistakes, rules: Rules | None = None
) -> Config:
    """Make the configuration of merged settings.

    Parameters
    ----------
    settings : dict
        Each value right by itself.
    layers : sequence of Layer
        Where they come from, later ones win; tells the places of mistakes.
    mistakes : Mistakes
        Those of the layers; takes the others.
    rules : callable, optional
        More checks, of a configuration in which every table is right.

    Raises
    ------
    SettingsError
        If there is a mistake.
    """
    config = _merged(settings)
    if not mistakes.has_lost_tables:
        report = _Report(settings, layers, mistakes)
        _check(report, config)
        for path, text in rules(config) if rules else ():
            report.add([path], text)
    mistakes.raise_any()
    return config


def _merged(settings: Settings) -> Config:
    """Return the configuration of merged settings, its rules not checked."""
    merged: dict[str, Any] = {section: settings.get(section, {}) for section in SECTIONS}
    for section in NAMED:
        tables = settings.get(section, {})
        merged[section] = [{"name": name} | table for name, table in tables.items()]
    for source in merged[SOURCES]:
        source["analysis"] = merged["analysis"] | source.get("analysis", {})
    return msgspec.convert(merged, Config)


def endpoint_rules(config: Config) -> Iterable[tuple[Path, str]]:
    """Check that the endpoints of ``[publish]`` can be bound; see ``Rules``."""
    publish = config.publish
    has_keys = bool(config.security.server_key and config.security.client_keys)
    parsers: dict[str, Callable[[str], Endpoint]] = {
        "endpoints": parse_endpoint,
        "raw32": lambda text: parse_raw32(text)[0],
    }
    for key, parse in parsers.items():
        for number, text in enumerate(getattr(publish, key)):
            try:
                check_bindable(parse(text), insecure=publish.insecure, has_keys=has_keys)
            except ConfigError as error:
                yield ("publish", key, number), str(error)


class _Report:
    """Adds the broken rules of merged settings; the arguments are those of ``merge``."""

    def __init__(self, settings: Settings, layers: Sequence[Layer], mistakes: Mistakes) -> None:
        self.settings, self.mistakes = settings, mistakes
        self._layers = layers

    def place(self, paths: Sequence[Path]) -> Place:
        """Return the place of the first of some paths that a layer sets; only files have one."""
        for path in paths:
            layer = setting_layer(self._layers, path)
            if layer is not None:
                return layer.place(path) if layer.is_file else self._no_place
        return self._no_place

    @property
    def _no_place(self) -> Place:
        return "", (len(self._layers), 0, 0)

    def add(self, paths: Sequence[Path], text: str) -> None:
        """Add a mistake at the first of some paths that is set."""
        self.mistakes.add(self.place(paths), text)

    def check(self, path: Path, prefix: str, check: Callable[[], Any]) -> None:
        """Add the error of a check, at the first of its keys that is set in a table."""
        try:
            check()
        except ConfigError as error:
            self.add([*((*path, key) for key in error.keys), path], f"{prefix}{error}")

    def check_table(self, path: Path, prefix: str, check: TableCheck) -> None:
        """Add every error of a check of a table."""
        table = self.settings[str(path[0])][str(path[1])]
        for key, text in broken_keys(check, table, self.mistakes.lost_keys(path)):
            self.add([(*path, key) if key else path], f"{prefix}{text}")


def _check(report: _Report, config: Config) -> None:
    """Check all rules."""
    _check_sources_named(report, config)
    products = _check_sources(report, config)
    values = _check_measurements(report, config, products)
    _check_triggers(report, config, products)
    for recording in config.recordings:
        _check_recording(report, recording, products, values)
        _check_triggers_of(report, recording, config.all_sources)
    listen, is_insecure = config.http.listen, config.http.insecure
    if listen:
        report.check(("http", "listen"), "", partial(parse_listen, listen, insecure=is_insecure))
    if config.recordings:
        for section, tables in ((RECORDINGS, config.recordings), (SOURCES, config.all_sources)):
            names = [table.name for table in tables]
            report.check((section,), "", partial(check_folder_names, section, names))
    pipes = [source.name for source in config.sources if source.uri == "-"]
    if len(pipes) > 1:
        text = "uri='-': standard input can be read by one source only"
        report.add([(SOURCES, pipes[-1], "uri")], text)


def _check_sources_named(report: _Report, config: Config) -> None:
    """Check that what names sources names such as there are."""
    names = [source.name for source in config.all_sources]
    known = ", ".join(filter(None, names)) or "none with a name"
    for section in NAMED[1:]:
        for table in getattr(config, section):
            for number, name in enumerate(table.sources):
                if name not in names:
                    prefix = prefix_of(table.name, section)
                    text = f"sources={name!r}: is no source's name; there are: {known}"
                    path = (section, table.name, SOURCES, number)
                    report.add([path], f"{prefix}: {text}")


# ---- sources and their products


def _check_sources(report: _Report, config: Config) -> _Products:
    """Check sources and their products.

    A mistake at one place that several sources have, because they share a table, is one.
    """
    products: dict[str, tuple[str, ...] | None] = {}
    shared: dict[tuple[Place, str, str], list[str]] = {}
    for source in config.all_sources:
        tables = _tables_of(config, source)
        lost = report.mistakes.lost_keys(*tables)
        products[source.name] = None
        if not lost:
            with suppress(ConfigError):
                products[source.name] = _products_of(source)
        if products[source.name] is None:
            for paths, text in _source_mistakes(report, config, source, tables, lost):
                place = report.place(paths)
                key = (place, text, "" if place[0] else source.name)
                shared.setdefault(key, []).append(source.name)
    for (place, text, _), names in shared.items():
        is_of_all = len(names) == len(config.sources) > 1
        of = "" if is_of_all or not config.sources else f"{', '.join(map(prefix_of, names))}: "
        report.mistakes.add(place, f"{of}{text}")
    return products


def _tables_of(config: Config, source: SourceTable) -> list[Path]:
    """Return the paths of the tables that a source takes its keys from."""
    if not config.sources:
        return [("source",), ("analysis",)]
    return [(SOURCES, source.name), (SOURCES, source.name, "analysis"), ("analysis",)]


def _source_mistakes(
    report: _Report, config: Config, source: SourceTable, tables: Sequence[Path], lost: set[str]
) -> Iterator[tuple[list[Path], str]]:
    """Yield every mistake of a source, then those of its products beside what is right of it."""
    settings = report.settings
    own = settings[SOURCES][source.name] if config.sources else settings.get("source", {})
    keys = own | settings.get("analysis", {}) | own.get("analysis", {})
    keys.pop("analysis", None)

    def with_keys(table: Mapping[str, Any]) -> SourceTable:
        analysis = {key: table[key] for key in table if key in SECTIONS["analysis"]}
        of_source = {"name": source.name} | {key: table[key] for key in table.keys() - analysis}
        return SourceTable(**of_source, analysis=AnalysisConfig(**analysis))

    for key, text in broken_keys(lambda table: _products_of(with_keys(table)), keys, lost):
        yield [(*table, key) for table in tables] if key else [tables[0]], text
        if key is None:
            return
        lost.add(key)
    right = with_keys({key: keys[key] for key in keys.keys() - lost})
    for product in config.products:
        if product.sources and source.name not in product.sources:
            continue

        def check(table: dict[str, Any], name: str = product.name) -> None:
            own = ProductConfig(name, **table).of(right.analysis)
            _products_of(msgspec.structs.replace(right, products=(own,)))

        path = (PRODUCTS, product.name)
        table = settings[PRODUCTS][product.name]
        of_product = {key: table[key] for key in table if key != SOURCES}
        for key, text in broken_keys(check, of_product, lost | report.mistakes.lost_keys(path)):
            yield [(*path, key) if key else path], text


# ---- what is measured and recorded of sources


def _check_measurements(
    report: _Report, config: Config, products: _Products
) -> dict[str, list[MeasurementConfig]]:
    """Check measurements, and return those of each source.

    Of each source, no two products of any kind may have one name.
    """
    found: dict[str, list[MeasurementConfig]] = {source: [] for source in products}
    taken = {source: set(names or ()) for source, names in products.items()}
    for section in KINDS:
        for one in getattr(config, section):
            prefix, path = f"{prefix_of(one.name, section)}: ", (section, one.name)
            for source in config.all_sources:
                if one not in source.measurements(section):
                    continue
                report.check_table(path, prefix, partial(_check_measurement, one, source))
                if one.name in taken[source.name]:
                    rule = "is the name of a product of the same source; must be another name"
                    report.add([path], f"{prefix}{rule}")
                taken[source.name].add(one.name)
                found[source.name].append(one)
    return found


def _check_measurement(
    one: MeasurementConfig, source: SourceTable, table: Mapping[str, Any]
) -> None:
    changed = type(one)(one.name, **table)
    changed.check(source.known_fs, source.known_channels, iq=source.is_iq)


def _check_triggers(report: _Report, config: Config, products: _Products) -> None:
    """Check triggers against the products of each of their sources."""
    if len(config.triggers) > TRIGGERS_MAX:
        text = f"triggers: {len(config.triggers)}: must be at most {TRIGGERS_MAX}"
        report.add([(TRIGGERS,)], text)
        return
    for trigger in config.triggers:
        name, path = trigger.name, (TRIGGERS, trigger.name)
        prefix = f"{prefix_of(name, TRIGGERS)}: "
        n_before = len(report.mistakes)
        report.check_table(path, prefix, partial(_check_trigger_table, name))
        # A key without a value has its default, which may break a rule with the others.
        is_whole = not report.mistakes.lost_keys(path)
        for source in config.all_sources:
            is_right = products[source.name] is not None and len(report.mistakes) == n_before
            if is_whole and is_right and trigger in source.triggers:
                report.check(path, prefix, partial(_check_trigger, trigger, source))


def _check_trigger_table(name: str, table: Mapping[str, Any]) -> None:
    trigger = TriggerConfig(name, **table)
    trigger.check()
    trigger.check_live()


def _check_triggers_of(
    report: _Report, recording: RecordingConfig, sources: Sequence[SourceTable]
) -> None:
    """Check that the triggers of a recording exist, each for one of its sources."""
    own = [one for one in sources if not recording.sources or one.name in recording.sources]
    known = sorted({trigger.name for source in own for trigger in source.triggers})
    for number, name in enumerate(recording.triggers):
        if name in RECORDER_TRIGGERS or name in known:
            continue
        text = (
            f"{prefix_of(recording.name, RECORDINGS)}: triggers={name!r}: must be one of "
            f"{', '.join(RECORDER_TRIGGERS)}, or the name of a table [triggers.NAME] of its "
            f"sources; there are: {', '.join(known) or 'none'}"
            f"{did_you_mean(name, (*RECORDER_TRIGGERS, *known))}"
        )
        report.add([(RECORDINGS, recording.name, "triggers", number)], text)


def _check_recording(
    report: _Report,
    recording: RecordingConfig,
    products: _Products,
    values: Mapping[str, Sequence[MeasurementConfig]],
) -> None:
    """Check a recording against the products of each source."""
    name, path = recording.name, (RECORDINGS, recording.name)
    prefix = f"{prefix_of(name, RECORDINGS)}: "
    report.check_table(path, prefix, lambda table: RecordingConfig(name, **table).check())
    for source in recording.sources or products:
        if (known := products.get(source)) is not None:
            check = partial(_check_product, recording, source, known, values[source])
            report.check(path, prefix, check)


def _check_trigger(trigger: TriggerConfig, source: SourceTable) -> None:
    """Check what can be checked before the source is opened, and its calibration is read."""
    # Import NumPy's users only where there are triggers.
    from spectrod.measure.triggers.detectors import check_unit, open_detector  # noqa: PLC0415

    n = len(source.select) or source.channels or source.default_channels
    unnamed = msgspec.structs.replace(source, channel_names=(), calibration="")
    specs = {spec.product: spec for spec in unnamed.specs(source.known_fs, n)}
    spec = find_product(trigger.product, specs, source.name)
    if not source.calibration:
        check_unit(trigger, spec)
    if source.known_fs is not None:
        open_detector(trigger, spec, None)


def _check_product(
    recording: RecordingConfig,
    source: str,
    known: Sequence[str],
    values: Sequence[MeasurementConfig],
) -> None:
    """Check that a source has the product of a recording, and that its files can hold it."""
    name = recording.product
    find_product(name, dict.fromkeys((*known, *(one.name for one in values))), source)
    if recording.pyramid and any(one.name == name for one in values):
        raise ConfigError(
            f"pyramid=true: must be false with product={name!r}, which has measurements",
            "pyramid",
            "product",
        )


def _products_of(source: SourceTable) -> tuple[str, ...]:
    """Check what can be checked without the source, which decides on its rate and channels.

    Returns
    -------
    names : tuple of str
        Of its products.

    Raises
    ------
    ConfigError
        If a rule is broken.
    """
    n_known = len(source.select) or source.channels
    if source.name:
        check_name("name", source.name)
    _check_select(source)
    check_channel_names(source.channel_names)
    source.check_rate()
    source.check_format()
    check_time_format(source.time_format)
    find_zone(source.files_zone, "files_zone")
    find_zone(source.time_zone)
    source.site.check()
    unnamed = msgspec.structs.replace(source, channel_names=(), calibration="")
    specs = unnamed.specs(source.known_fs, n_known or source.default_channels)
    if n_known:
        name_channels(source.channel_names, specs[0].n_signals)
    return tuple(spec.product for spec in specs)


def _check_select(source: SourceTable) -> None:
    select = ",".join(map(str, source.select))
    if len(set(source.select)) < len(source.select):
        raise ConfigError(f"select={select}: must name each channel once", "select")
    if source.channels and max(source.select, default=0) >= source.channels:
        raise ConfigError(
            f"select={select}: must be below channels={source.channels}", "select", "channels"
        )
