"""Messages of measurements in Arrow's memory."""

import json

import arro3.core as arro3
import msgspec
import numpy as np
import pytest
import xarray

from spectrod.client import MessageTable
from spectrod.daemon.publisher.interval_encoder import IntervalEncoder
from spectrod.dsp.calibration import Calibration, ChannelCalibration
from spectrod.dsp.interval_flags import IntervalFlag
from spectrod.dsp.level_reference import parse_reference
from spectrod.formats.values.arrow_tables import MeasurementTable
from spectrod.lib import optional_packages
from spectrod.lib.errors import InputError, UnavailableError
from spectrod.measure.levels import LevelMeter
from spectrod.wire.headers import LevelsHeader
from spectrod.wire.schema import EventMessage, LevelsFrame, decode, encode

BEGIN_NS = 1_777_600_000 * 10**9 + 123
FS = 8000.0


def measured(channels=1):
    """Measure 2.5 intervals; return the rows and the meter."""
    meter = LevelMeter(
        FS, channels=channels, quantities=["LAeq", "rms"], interval_s=1.0, utc_ns=BEGIN_NS
    )
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, (channels, 20_000))
    return [*meter.push(noise), *meter.finish()], meter


def message(row, channel=0, name="", **changes):
    """Return a row of a channel as the client hands it out, read from its bytes."""
    header = LevelsHeader(
        seq=0,
        epoch=7,
        t_utc_ns=row.begin_utc_ns,
        t_mono_ns=0,
        sample_index=row.first_sample,
        fs=FS,
        interval_s=1.0,
        n_samples=row.n_samples,
        due_samples=row.due_samples,
        quantities=("LAeq", "rms"),
        units=("dBFS", "FS"),
        shape=(2,),
        ref="full scale",
        flags=tuple(str(one.name).lower() for one in IntervalFlag(int(row.flags[channel]))),
    )
    header = msgspec.structs.replace(header, **changes)
    topic = f"levels/mic/{name or channel}/meter/"
    return decode(encode(LevelsFrame(topic, header, row.values[:, channel])))


def columns_of(table):
    made = arro3.Table.from_arrow(table)  # by its C interface, as other libraries do
    return {name: made.column(name).to_pylist() for name in made.column_names}


def types_of(table):
    made = arro3.Table.from_arrow(table)
    return [(field.name, str(field.type), field.metadata_str) for field in made.schema]


@pytest.mark.parametrize("names", [["0"], ["left", "right"]])
def test_columns_are_those_of_a_table_of_rows(names):
    """Names, types, units and cells are those that MeasurementTable has of the same rows."""
    rows, meter = measured(len(names))
    messages = [message(row, k, name) for row in rows for k, name in enumerate(names)]
    table, due = MessageTable(messages), MeasurementTable(rows, meter, channels=names)
    assert types_of(table) == types_of(due)
    assert columns_of(table) == columns_of(due)
    assert len(table) == len(rows)
    about = arro3.Table.from_arrow(table).schema.metadata_str
    assert (about["source"], about["product"], about["reference"]) == ("mic", "meter", "full scale")
    assert json.loads(about["units"]) == {"LAeq": "dBFS", "rms": "FS"}
    assert (about["interval_s"], about["calibration"]) == ("1.0", "none: of digital full scale")
    assert repr(table).startswith(f"<MessageTable: 3 rows, {2 + 3 * len(names)} columns: time, dur")
    assert "LAeq" in table._repr_html_()


def test_the_size_of_a_table_is_bounded(monkeypatch):
    """Channels that a peer invents take no more memory than a long day of others."""
    monkeypatch.setattr("spectrod.wire.message_table._CELLS_MAX", 35)
    rows, _ = measured()
    MessageTable([message(row, name=f"a{k}") for row in rows for k in range(5)])
    text = "3 intervals, 6 channels, 2 quantities: must be at most 35 values in one table"
    with pytest.raises(InputError, match=text):
        MessageTable([message(row, name=f"a{k}") for row in rows for k in range(6)])


def test_a_message_is_a_table_of_one_row():
    """A single message is read by the same interface."""
    (row, *_), meter = measured()
    assert columns_of(message(row)) == columns_of(MeasurementTable([row], meter))


def test_rows_ascend_and_what_is_missing_is_null():
    """Messages may come in any order, twice, and not at all."""
    rows, _ = measured(2)
    messages = [message(row, k) for row in reversed(rows) for k in (0, 1)]
    lost = messages.pop(3)  # of channel 1, in the middle
    table = MessageTable([*messages, messages[0]])
    found = columns_of(table)
    assert (lost.channel, len(table)) == ("1", 3)
    assert found["LAeq@0"] == [row.values[0, 0] for row in rows]
    assert found["LAeq@1"] == [rows[0].values[0, 1], None, rows[2].values[0, 1]]
    assert found["flags@1"][1] is None
    assert found["flags@0"][1] == ""


def test_messages_that_do_not_belong_together_are_refused():
    """The error has the number of the message, the value and the rule."""
    rows, _ = measured()
    first = message(rows[0])

    def refused(text, *others):
        with pytest.raises(InputError, match=text):
            MessageTable([first, *others])

    with pytest.raises(InputError, match="no messages: a table of them has at least one"):
        MessageTable([])
    refused("message 1 is a float: must be one with measurements, such as", 1.0)
    event = EventMessage("event/mic/", None)
    refused("message 1 is a EventMessage: must be one with measurements, such as", event)
    other = message(rows[1], interval_s=2.0)
    refused(r"message 1: interval_s 2\.0: must be 1\.0, as of the first one", other)
    other = message(rows[1], quantities=("LAeq", "peak\n"))
    refused(r"message 1: quantities LAeq, peak\\n: must be LAeq, rms, as of the first one", other)
    other = message(rows[1], units=("dB SPL", "FS"))
    refused("message 1: LAeq in dB SPL: must be dBFS in one table, as of messages before", other)
    of_peer = [message(row, quantities=("LAeq", "time")) for row in rows]
    with pytest.raises(InputError, match="quantities: time: two columns of a table must not have"):
        MessageTable(of_peer)
    of_peer = [message(row, quantities=("LAeq", "flags@x")) for row in rows]
    assert columns_of(MessageTable(of_peer))["flags@x"] == [row.values[1, 0] for row in rows]


@pytest.mark.parametrize("names", [["0"], ["left", "right"]])
def test_its_dataset_is_that_of_the_rows(names):
    """Values, flags, units and CF's attributes are those of MeasurementTable; times are exact."""
    rows, meter = measured(len(names))
    messages = [message(row, k, name) for row in rows for k, name in enumerate(names)]
    made = MessageTable(messages).to_xarray()
    due = MeasurementTable(rows, meter, channels=names).to_xarray()
    shared = ["LAeq", "rms", "effort", "flags", "channel_name"]
    for name in shared:
        assert made[name].dims == due[name].dims
        np.testing.assert_array_equal(made[name].values, due[name].values)
    for name in ("LAeq", "rms", "effort", "channel_name"):
        assert made[name].attrs == due[name].attrs
    assert made.flags.flag_meanings == due.flags.flag_meanings
    assert made.flags.flag_masks.tolist() == due.flags.flag_masks.tolist()
    assert made.time.values.tolist() == due.t_utc_ns.values.tolist()
    assert made.time.attrs == due.time.attrs
    assert (made.attrs["source"], made.attrs["interval_s"]) == ("mic", 1.0)


@pytest.mark.parametrize("reference", ["20 uPa", "1 uPa", "1e-6 Pa", "1 V", "2 m/s2"])
def test_levels_that_are_calibrated_have_the_names_of_files(reference):
    """CF's standard names and units, and terms of ISO 18405, as MeasurementTable has them."""
    quantities = ["LZeq", "LZE", "LZpeak", "LZFmax", "LZF10", "LZS", "LAeq", "rms"]
    calibration = ChannelCalibration(parse_reference(reference), 120.0)
    calibrations = [calibration] * 2
    meter = LevelMeter(
        FS, channels=2, quantities=quantities, full_scale_db=[120.0] * 2, utc_ns=BEGIN_NS
    )
    noise = np.random.default_rng(2).uniform(-0.5, 0.5, (2, 16_000))
    rows = [*meter.push(noise), *meter.finish()]
    encoder = IntervalEncoder(
        "mic", (), "meter", meter.quantities, fs=FS, interval_s=1.0, calibrations=calibrations
    )
    fields = encoder._fields[0]
    messages = [message(row, k, **fields) for row in rows for k in range(2)]
    made = MessageTable(messages).to_xarray()
    about = Calibration("cal.toml", calibration, {})
    due = MeasurementTable(rows, meter, calibration=about).to_xarray()
    for name in quantities:
        assert made[name].attrs == due[name].attrs
    assert ("standard_name" in made.LZeq.attrs) == reference.endswith("Pa")
    del messages[0]
    assert MessageTable(messages).to_xarray().LZeq.attrs == due.LZeq.attrs
    strange = [message(row, 1, "other", **fields | {"ref": "full scale"}) for row in rows]
    mixed = MessageTable([*messages, *strange]).to_xarray()
    assert "standard_name" not in mixed.LZeq.attrs


def test_a_dataset_of_lost_messages_has_no_values_there():
    """Messages one by one are joined by xarray, as frames are; later flags are left out."""
    rows, _ = measured(2)
    messages = [message(row, k, flags=("overload", "of_2040")) for row in rows for k in (0, 1)]
    del messages[3]  # of channel 1, in the middle
    made = MessageTable(messages).to_xarray()
    assert np.isnan(made.LAeq.values).tolist() == [[False] * 2, [False, True], [False] * 2]
    assert made.flags.values.tolist() == [[1, 1], [1, 0], [1, 1]]
    parts = [message(row).to_xarray() for row in rows]
    joined = xarray.concat(parts, "time")
    np.testing.assert_array_equal(joined.rms, made.rms[:, :1])
    of_peer = message(rows[0], quantities=("L 1", "L-1"))
    with pytest.raises(InputError, match="quantities: L_1: two columns of a table must not have"):
        of_peer.to_xarray()
    for name in ("effort", "channel"):
        of_peer = message(rows[0], quantities=(name, "rms"))
        with pytest.raises(InputError, match=f"quantities: {name}: two columns of a table must"):
            of_peer.to_xarray()


def test_the_library_is_named_if_it_is_missing(monkeypatch):
    """Without arro3 or xarray the error says what to install."""
    rows, _ = measured()

    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(optional_packages, "import_module", missing)
    with pytest.raises(UnavailableError, match=r"arro3\.core is not installed: .*spectrod\[parq"):
        message(rows[0]).to_arrow()
    with pytest.raises(UnavailableError, match=r"xarray is not installed: .*spectrod\[xarray\]"):
        message(rows[0]).to_xarray()
