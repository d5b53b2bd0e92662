"""Quality flags of a unit as a table: a row for each minute and channel."""

from typing import Any

from spectrod.apps.batch.minute_checks import CheckedMinute, MinuteChecks
from spectrod.apps.batch.unit_settings import SOFTWARE, UnitSettings
from spectrod.dsp.conditions import Condition, names_of
from spectrod.dsp.measurement_columns import FLAGS_BETWEEN
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.quality import QUALITY, QUESTIONABLE, quality_of_minute
from spectrod.formats.values.parquet_bytes import parquet_bytes
from spectrod.lib.arrow_table import field_metadata
from spectrod.lib.optional_packages import need

_MINUTE_NS = 60 * NS_PER_S
_CALIBRATION = "calibration"
"""Reason of a minute that a calibration is not valid for."""


def flags_parquet(checks: MinuteChecks, settings: UnitSettings) -> bytes:
    """Return the content of a Parquet file with the flags of a unit's minutes, at least one.

    Columns are ``begin_utc`` and ``end_utc`` of the minute, ``channel``, its ``quality_flag``, the
    worst of its bands in a daily file but for bands outside a calibration's response, its
    ``reason``, words with ``|`` between them, ``effort_s``, ``gaps`` and ``clipped_samples``.

    Raises
    ------
    UnavailableError
        If arro3 is not installed: ``pip install 'spectrod[parquet]'``.
    """
    core = need("arro3.core", "parquet")
    kinds = {
        "begin_utc": core.DataType.timestamp("ns", tz="UTC"),
        "end_utc": core.DataType.timestamp("ns", tz="UTC"),
        "channel": core.DataType.string(),
        "quality_flag": core.DataType.int8(),
        "reason": core.DataType.string(),
        "effort_s": core.DataType.float64(),
        "gaps": core.DataType.int64(),
        "clipped_samples": core.DataType.int64(),
    }
    rows = (row for one in checks.minutes for row in _rows(one, checks, settings))
    columns = zip(zip(*rows, strict=True), kinds.values(), strict=True)
    arrays = [_array(core, list(cells), kind) for cells, kind in columns]
    fields = [
        core.Field(name, kind, metadata=field_metadata("s" if name == "effort_s" else "", ""))
        for name, kind in kinds.items()
    ]
    table = core.Table.from_arrays(arrays, schema=core.Schema(fields))
    return parquet_bytes(table, _about(settings), software=SOFTWARE)


def _rows(
    minute: CheckedMinute, checks: MinuteChecks, settings: UnitSettings
) -> list[tuple[Any, ...]]:
    """Return the cells of a minute, of each channel."""
    begin_ns, found = minute.number * _MINUTE_NS, checks.quality.get(minute.number)
    rows = []
    for k, channel in enumerate(settings.signals):
        conditions = Condition.CHECKED | (0 if found is None else int(found[k]))
        flag, reasons = quality_of_minute(conditions), names_of(conditions & ~Condition.CHECKED)
        calibration = settings.calibrations[k] if settings.calibrations else None
        if calibration is not None and not calibration.validity.covers(
            begin_ns, begin_ns + _MINUTE_NS
        ):
            flag, reasons = max(flag, QUESTIONABLE), (*reasons, _CALIBRATION)
        rows.append(
            (
                *(begin_ns, begin_ns + _MINUTE_NS, channel, flag, FLAGS_BETWEEN.join(reasons)),
                *(minute.effort_s, minute.n_gaps, minute.n_clipped[k]),
            )
        )
    return rows


def _array(core: Any, cells: list[Any], kind: Any) -> Any:
    if core.DataType.is_timestamp(kind):
        return core.Array(cells, type=core.DataType.int64()).cast(kind)
    return core.Array(cells, type=kind)


def _about(settings: UnitSettings) -> dict[str, str]:
    return {
        "title": f"Quality flags of {settings.deployment.name}",
        "software": SOFTWARE,
        "flag_values": ", ".join(map(str, QUALITY["flag_values"].tolist())),
        "flag_meanings": QUALITY["flag_meanings"],
        **settings.attributes,
    }
