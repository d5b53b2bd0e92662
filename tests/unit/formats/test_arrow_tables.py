"""Measurements and events in Arrow's memory."""

from dataclasses import replace

import arro3.core as arro3
import numpy as np
import pytest

from spectrod.formats.event_fields import fields_of as fields_of_event
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.values.arrow_tables import EventTable, MeasurementTable
from spectrod.lib import optional_packages
from spectrod.lib.errors import ConfigError, InputError, UnavailableError
from spectrod.measure.levels import LevelMeter
from spectrod.measure.triggers.detection import Detection
from spectrod.measure.triggers.trigger import TriggerEvent

S = 10**9
BEGIN_NS = 1_777_600_000 * S + 123
FS = 8000.0


def measured(channels=2, **settings):
    """Measure 2.5 intervals, of which the last has a gap; return the rows and the meter."""
    meter = LevelMeter(
        FS,
        channels=channels,
        **{"quantities": ["LAeq", "rms"], "interval_s": 1.0, "utc_ns": BEGIN_NS} | settings,
    )
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, (channels, 20_000))
    rows = [*meter.push(noise[:, :19_000]), *meter.push(noise[:, 19_000:], missing_samples=500)]
    return [*rows, *meter.finish()], meter


def columns_of(table):
    made = arro3.Table.from_arrow(table)  # by its C interface, as other libraries do
    return {name: made.column(name).to_pylist() for name in made.column_names}


def fields_of(table):
    made = arro3.Table.from_arrow(table)
    return {
        name: {key.decode(): text.decode() for key, text in made.field(name).metadata.items()}
        for name in made.column_names
    }


def test_rows_are_those_of_the_meter():
    """Each value, time and flag is in its column, to the bit and to the nanosecond."""
    rows, meter = measured()
    table = MeasurementTable(rows, meter, channels=["left", "right"])
    found = columns_of(table)
    assert list(found) == [
        *("time", "duration_s", "flags@left", "flags@right"),
        *("LAeq@left", "LAeq@right", "rms@left", "rms@right"),
    ]
    assert len(table) == len(rows) == 3
    values = np.array([row.values for row in rows])
    for n, name in enumerate(["LAeq", "rms"]):
        for channel, side in enumerate(["left", "right"]):
            assert found[f"{name}@{side}"] == values[:, n, channel].tolist()
    assert found["flags@left"][1] == ""
    assert "gap" in found["flags@left"][2].split("|")
    assert found["duration_s"] == [row.duration_s for row in rows]
    times = arro3.Table.from_arrow(table).column("time")
    assert str(times.type).endswith('Timestamp(ns, "UTC")>\n')
    assert times.cast(arro3.DataType.int64()).to_pylist() == [row.begin_utc_ns for row in rows]


def test_fields_have_unit_and_channel():
    """Units are those of each channel's calibration; what is of all channels names none."""
    rows, meter = measured(quantities=["LAeq", "LUFS_M"])
    found = fields_of(MeasurementTable(rows, meter))
    assert found["LAeq@1"] == {"unit": "dBFS", "channel": "1"}
    assert found["LUFS_M"] == {"unit": "LUFS"}
    assert found["duration_s"] == {"unit": "s"}
    assert found["flags@0"] == {"channel": "0"}
    about = arro3.Table.from_arrow(MeasurementTable(rows, meter, source="pier")).schema.metadata
    assert about[b"title"] == b"Measurements of pier"


def test_bands_and_zones():
    """Levels in bands are columns of their own, and times have the zone that was asked for."""
    rows, meter = measured(1, bands="octave", band_range_hz=(250.0, 1000.0))
    table = MeasurementTable(rows, meter, time_zone="Europe/Berlin")
    found = columns_of(table)
    names = ["LZeq_250Hz", "LZeq_500Hz", "LZeq_1kHz"]
    assert list(found)[-3:] == names
    bands = np.array([row.band_values[0, :, 0] for row in rows])
    assert [found[name] for name in names] == bands.T.tolist()
    assert "Europe/Berlin" in str(arro3.Table.from_arrow(table).column("time").type)


def test_rows_without_a_date_count_from_the_first_sample():
    """Their column is elapsed_s, in seconds; a table without rows has its columns."""
    rows, meter = measured(1, utc_ns=None)
    table = MeasurementTable(rows, meter)
    assert columns_of(table)["elapsed_s"] == [row.first_sample / FS for row in rows]
    assert fields_of(table)["elapsed_s"] == {"unit": "s"}
    assert columns_of(MeasurementTable([], meter)) == {name: [] for name in columns_of(table)}


def test_rows_that_do_not_belong_together_are_refused():
    """Rows with and without dates, and rows of another meter, are an error with their number."""
    rows, meter = measured()
    dateless = [rows[0], replace(rows[1], begin_utc_ns=None)]
    with pytest.raises(InputError, match="row 1: has no date, and row 0 has one: rows of a table"):
        MeasurementTable(dateless, meter)
    others, _ = measured(1)
    text = r"row 3: \(2, 1\) values, and \(0, 0\) in bands: must be \(2, 2\) and \(0, 0\)"
    with pytest.raises(InputError, match=text):
        MeasurementTable([*rows, *others], meter)
    with pytest.raises(InputError, match=r"channels=\['a'\]: must be 2 names"):
        MeasurementTable(rows, meter, channels=["a"])
    with pytest.raises(ConfigError, match="channels: flags@a: two columns of a table must not"):
        MeasurementTable(rows, meter, channels=["a", "a"])


def test_it_is_drawn_with_its_names_and_zone():
    """Panels of bands have the names of channels, and the clock has its zone."""
    rows, meter = measured(bands="octave")
    table = MeasurementTable(rows, meter, channels=["left", "right"], time_zone="Asia/Tokyo")
    figure = table.plot(FigureLook("Hall"))
    assert figure.get_suptitle() == "Hall"
    titles = [panel.get_title("left") for panel in figure.axes]
    assert titles[-2:] == [f"all intervals, channel {side}" for side in ("left", "right")]
    assert "Asia/Tokyo" in figure.axes[-3].get_xlabel()


def test_it_prints_as_one_line():
    """The line has sizes and names."""
    rows, meter = measured(1)
    assert repr(MeasurementTable(rows, meter)) == (
        "<MeasurementTable: 3 rows, 5 columns: time, duration_s, flags, LAeq, rms>"
    )


def test_notebooks_show_the_first_rows_with_units(monkeypatch):
    """All texts are escaped; what is not shown is in no cell."""
    rows, meter = measured(1)
    shown = MeasurementTable(rows, meter)._repr_html_()
    assert shown.startswith("<table><caption>&lt;MeasurementTable: 3 rows, 5 columns: time, ")
    assert "<th>duration_s [s]</th><th>flags</th><th>LAeq [dBFS]</th>" in shown
    assert shown.count("<tr>") == 4
    events = EventTable([replace(detected(has_utc=False), file="<b>.wav")] * 12)
    shown = events._repr_html_()
    assert shown.count("<tr>") == 11
    assert "<td>&lt;b&gt;.wav</td>" in shown
    assert "<tr><td></td><td></td><td>" in shown  # no times of the clock
    monkeypatch.setattr("spectrod.lib.arrow_table._COLUMNS_SHOWN", 3)
    assert events._repr_html_().count("<th>") == 3


def detected(**settings):
    times = {"begin_utc_ns": BEGIN_NS, "end_utc_ns": BEGIN_NS, "peak_utc_ns": BEGIN_NS}
    event = TriggerEvent(
        name="call",
        kind="level",
        state="ended",
        reason="released",
        product="spec",
        channel="left",
        f_min_hz=100.0,
        f_max_hz=2000.0,
        frequency_hz=None,
        level=-20.126,
        threshold=-30.0,
        floor=-41.0,
        unit="dBFS",
        duration_s=0.25,
        pulses=None,
        **times,
    )
    known = {"has_utc": True, "channel": 1, "fs": FS} | settings
    return Detection(event, 0, 2000, "a.wav", 1.5, 61.5, **known)


def test_events_are_those_of_the_csv():
    """A row has the cells of the CSV file, with times in UTC; what is not known is null."""
    table = EventTable([detected(), detected(has_utc=False)])
    found = columns_of(table)
    cells = fields_of_event(detected())
    assert list(found) == list(cells)
    for name in cells.keys() - {"begin_utc", "end_utc"}:
        assert found[name] == [cells[name]] * 2, name
    assert (found["level"][0], found["frequency_hz"]) == (-20.13, [None] * 2)
    made, as_ns = arro3.Table.from_arrow(table), arro3.DataType.int64()
    begins, ends = (made.column(name).cast(as_ns) for name in ("begin_utc", "end_utc"))
    assert begins.to_pylist() == [BEGIN_NS, None]
    assert ends.to_pylist() == [BEGIN_NS + S // 4, None]
    units = fields_of(table)
    assert (units["begin_s"], units["f_min_hz"]) == ({"unit": "s"}, {"unit": "Hz"})
    assert (units["over_floor_db"], units["file"]) == ({"unit": "dB"}, {})
    assert columns_of(EventTable([])) == {name: [] for name in cells}
    with pytest.raises(InputError, match="event 1 is a TriggerEvent: must be a Detection, as trig"):
        EventTable([detected(), detected().event])


def test_the_library_is_named_if_it_is_missing(monkeypatch):
    """Without arro3 the error says what to install."""
    rows, meter = measured(1)

    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(optional_packages, "import_module", missing)
    with pytest.raises(UnavailableError, match=r"arro3\.core is not installed: .*spectrod\[parq"):
        MeasurementTable(rows, meter)
    with pytest.raises(UnavailableError, match=r"arro3\.core is not installed: .*spectrod\[parq"):
        EventTable([])
