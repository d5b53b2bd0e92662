"""Rules between settings: checks of whole tables, and of tables against each other."""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    Settings,
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
from spectrod.lib.names import check_channel_names, check_name, name_channels
from spectrod.lib.suggestions import did_you_mean
from spectrod.lib.time_format import check_time_format
from spectrod.measure.kinds import KINDS
from spectrod.measure.measurement import MeasurementConfig
from spectrod.measure.triggers.trigger_config import RECORDER_TRIGGERS, TRIGGERS_MAX, TriggerConfig
from spectrod.wire.endpoint import (
    Endpoint,
    check_bindable,
    parse_endpoint,
    parse_listen,
    parse_raw32,
)

__all__ = ["Rules", "endpoint_rules", "merge"]

Rules = Callable[[Config], Iterable[tuple[Path, str]]]
"""More checks of a configuration: yields the path of a setting, and the broken rule."""


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
    merger = _Merger(settings, layers, mistakes)
    config = merger.config()
    if not mistakes.has_lost_tables:
        merger.check(config)
        for path, text in rules(config) if rules else ():
            merger.add([path], text)
    mistakes.raise_any()
    return config


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


class _Merger:
    """One merge; the arguments are those of ``merge``."""

    def __init__(self, settings: Settings, layers: Sequence[Layer], mistakes: Mistakes) -> None:
        self._settings, self._layers, self._mistakes = settings, layers, mistakes
        # Of mistakes in tables that several sources share: which of them have it.
        self._shared: dict[tuple[str, tuple[int, ...], str], list[str]] = {}

    def config(self) -> Config:
        """Return the configuration, its rules not checked."""
        merged: dict[str, Any] = {section: self._settings.get(section, {}) for section in SECTIONS}
        merged[SOURCES] = [
            {"name": name} | table | {"analysis": merged["analysis"] | table.get("analysis", {})}
            for name, table in self._settings.get(SOURCES, {}).items()
        ]
        for section in NAMED[1:]:
            merged[section] = [
                {"name": name} | table for name, table in self._settings.get(section, {}).items()
            ]
        return msgspec.convert(merged, Config)

    def add(self, paths: Sequence[Path], text: str, source: str = "") -> None:
        """Add a mistake, at the first of some paths that a file sets; others have no place.

        That of one of several sources names the source. Where several have the same mistake at one
        place, because they share a table, it is one.
        """
        where, order = "", (len(self._layers), 0, 0)
        for path in paths:
            layer = setting_layer(self._layers, path)
            if layer is not None and layer.is_file:
                where, order = f"{layer.where(path)}: ", layer.order(path)
            if layer is not None:
                break
        if source and where:
            self._shared.setdefault((where, order, text), []).append(source)
        else:
            of = f"{prefix_of(source)}: " if source else ""
            self._mistakes.add(f"{where}{of}{text}", order)

    def _add_shared(self, n_sources: int) -> None:
        """Add the mistakes of sources; one that all of several have names none of them."""
        for (where, order, text), names in self._shared.items():
            is_of_all = n_sources > 1 and len(names) == n_sources
            of = "" if is_of_all else f"{', '.join(prefix_of(name) for name in names)}: "
            self._mistakes.add(f"{where}{of}{text}", order)

    def check(self, config: Config) -> None:
        """Check all rules."""
        self._check_sources_named(config)
        products = {
            source.name: self._check_source(config, source) for source in config.all_sources
        }
        self._add_shared(len(config.sources))
        values = self._check_measurements(config, products)
        self._check_triggers(config, products)
        for recording in config.recordings:
            self._check_recording(recording, products, values)
            self._check_triggers_of(recording, config.all_sources)
        listen, is_insecure = config.http.listen, config.http.insecure
        if listen:
            self._try([("http", "listen")], partial(parse_listen, listen, insecure=is_insecure))
        if config.recordings:
            for section, tables in (
                (RECORDINGS, config.recordings),
                (SOURCES, config.all_sources),
            ):
                names = [table.name for table in tables]
                self._try([(section,)], partial(check_folder_names, section, names))
        if sum(source.uri == "-" for source in config.sources) > 1:
            path = (SOURCES, next(s.name for s in reversed(config.sources) if s.uri == "-"), "uri")
            self.add([path], "uri='-': standard input can be read by one source only")

    def _try(self, paths: Sequence[Path], check: Callable[[], Any]) -> None:
        try:
            check()
        except ConfigError as error:
            self.add(paths, str(error))

    def _check_sources_named(self, config: Config) -> None:
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
                        self.add([path], f"{prefix}: {text}")

    def _check_source(self, config: Config, source: SourceTable) -> tuple[str, ...] | None:
        """Check a source and its products; return their names, or None after a mistake."""
        name = source.name if config.sources else ""
        try:
            if not self._lost(source, config):
                return _products_of(source)
        except ConfigError:
            pass
        self._find_mistakes(config, source, name)
        return None

    def _tables(self, name: str) -> dict[str, list[Path]]:
        """Return the paths of the tables that a source, if one of several, takes its keys from."""
        if not name:
            return {"source": [("source",)], "analysis": [("analysis",)]}
        own = (SOURCES, name)
        return {"source": [own], "analysis": [(*own, "analysis"), ("analysis",)]}

    def _lost(self, source: SourceTable, config: Config) -> set[str]:
        tables = self._tables(source.name if config.sources else "")
        return self._mistakes.lost_keys(*tables["source"], *tables["analysis"])

    def _find_mistakes(self, config: Config, source: SourceTable, name: str) -> None:
        """Find every mistake of a source and its products."""
        tables = self._tables(name)
        kinds = {key: kind for kind in tables for key in SECTIONS[kind]}
        set_keys = self._set_keys(name)
        lost = self._lost(source, config)

        def with_keys(table: Mapping[str, Any]) -> SourceTable:
            of = {kind: {key: table[key] for key in table if kinds[key] == kind} for kind in tables}
            analysis = AnalysisConfig(**of["analysis"])
            return SourceTable(**({"name": source.name} | of["source"]), analysis=analysis)

        def check(table: dict[str, Any]) -> None:
            _products_of(with_keys(table))

        for key, message in broken_keys(check, set_keys, lost):
            paths = [(*table, key) for table in tables[kinds[key]]] if key else tables["source"]
            self.add(paths, message, name)
            if key is None:
                return
            lost.add(key)
        right = {key: value for key, value in set_keys.items() if key not in lost}
        self._find_product_mistakes(config, with_keys(right), name, lost)

    def _set_keys(self, name: str) -> dict[str, Any]:
        """Return the values that layers give a source, its analysis included."""
        settings = self._settings
        analysis: dict[str, Any] = settings.get("analysis", {})
        if not name:
            return settings.get("source", {}) | analysis
        table: dict[str, Any] = settings[SOURCES][name]
        own_analysis: dict[str, Any] = table.get("analysis", {})
        return {key: table[key] for key in table if key != "analysis"} | analysis | own_analysis

    def _find_product_mistakes(
        self, config: Config, source: SourceTable, name: str, lost: set[str]
    ) -> None:
        """Find the mistakes of the products of a source whose other settings are right."""
        for product in config.products:
            if product.sources and source.name not in product.sources:
                continue
            path = (PRODUCTS, product.name)
            table = self._settings[PRODUCTS][product.name]
            keys = {key: value for key, value in table.items() if key != SOURCES}

            def check(table: dict[str, Any], product_name: str = product.name) -> None:
                own = ProductConfig(product_name, **table).of(source.analysis)
                _products_of(msgspec.structs.replace(source, products=(own,)))

            lost_here = lost | self._mistakes.lost_keys(path)
            for key, message in broken_keys(check, keys, lost_here):
                self.add([(*path, key) if key else path], message, name)

    def _check_measurements(
        self, config: Config, products: Mapping[str, tuple[str, ...] | None]
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
                    check = partial(_check_measurement, type(one), one.name, source)
                    self._check_table(path, prefix, check)
                    if one.name in taken[source.name]:
                        rule = "is the name of a product of the same source; must be another name"
                        self.add([path], f"{prefix}{rule}")
                    taken[source.name].add(one.name)
                    found[source.name].append(one)
        return found

    def _check_triggers(
        self, config: Config, products: Mapping[str, tuple[str, ...] | None]
    ) -> None:
        """Check triggers against the products of each of their sources."""
        if len(config.triggers) > TRIGGERS_MAX:
            text = f"triggers: {len(config.triggers)}: must be at most {TRIGGERS_MAX}"
            self.add([(TRIGGERS,)], text)
            return
        for trigger in config.triggers:
            prefix, path = f"{prefix_of(trigger.name, TRIGGERS)}: ", (TRIGGERS, trigger.name)
            n_before = len(self._mistakes)
            check = partial(_check_trigger_table, trigger.name)
            self._check_table(path, prefix, check)
            for source in config.all_sources:
                known = products[source.name]
                is_right = len(self._mistakes) == n_before
                if trigger in source.triggers and known is not None and is_right:
                    check = partial(_check_trigger, trigger, source, known)
                    self._try_table(path, prefix, check)

    def _try_table(self, path: Path, prefix: str, check: Callable[[], None]) -> None:
        """Check a table as a whole; the mistake is at the first key of its error that is set."""
        try:
            check()
        except ConfigError as error:
            paths = [(*path, key) for key in error.keys]
            self.add([*paths, path], f"{prefix}{error}")

    def _check_triggers_of(
        self, recording: RecordingConfig, sources: Sequence[SourceTable]
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
            self.add([(RECORDINGS, recording.name, "triggers", number)], text)

    def _check_recording(
        self,
        recording: RecordingConfig,
        products: Mapping[str, tuple[str, ...] | None],
        values: Mapping[str, Sequence[MeasurementConfig]],
    ) -> None:
        """Check a recording against the products of each source."""
        name = recording.name
        prefix, path = f"{prefix_of(name, RECORDINGS)}: ", (RECORDINGS, name)
        self._check_table(path, prefix, lambda table: RecordingConfig(name, **table).check())
        for source in recording.sources or products:
            if (known := products.get(source)) is not None:
                check = partial(_check_product, recording, source, known, values[source])
                self._try_table(path, prefix, check)

    def _check_table(
        self, path: Path, prefix: str, check: Callable[[dict[str, Any]], None]
    ) -> None:
        """Check the table of a recording or of levels."""
        table = self._settings[str(path[0])][str(path[1])]
        for key, message in broken_keys(check, table, self._mistakes.lost_keys(path)):
            self.add([(*path, key) if key else path], f"{prefix}{message}")


def _check_measurement(
    kind: type[MeasurementConfig], name: str, source: SourceTable, table: dict[str, Any]
) -> None:
    kind(name, **table).check(source.known_fs, source.known_channels, iq=source.is_iq)


def _check_trigger_table(name: str, table: dict[str, Any]) -> None:
    TriggerConfig(name, **table).check()


def _check_trigger(trigger: TriggerConfig, source: SourceTable, products: Sequence[str]) -> None:
    """Check what can be checked before the source is opened, and its calibration is read."""
    # Import NumPy's users only where there are triggers.
    from spectrod.measure.triggers.detectors import check_unit, open_detector  # noqa: PLC0415

    _require_product(trigger.product, source.name, products)
    n = len(source.select) or source.channels or source.default_channels
    unnamed = msgspec.structs.replace(source, channel_names=(), calibration="")
    specs = {spec.product: spec for spec in unnamed.specs(source.known_fs, n)}
    spec = specs[trigger.product or products[0]]
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
    _require_product(name, source, (*known, *(one.name for one in values)))
    if recording.pyramid and any(one.name == name for one in values):
        raise ConfigError(
            f"pyramid=true: must be false with product={name!r}, which has named values",
            "pyramid",
            "product",
        )


def _require_product(product: str, source: str, known: Sequence[str]) -> None:
    """Check that a source has a product; an empty name is the main one."""
    if product and product not in known:
        of_source = f"{source} has no such product" if source else "the source has no such product"
        raise ConfigError(f"{of_source}; there are: {', '.join(known)}", product=product)


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
