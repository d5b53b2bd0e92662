"""Messages of a daemon as rows, and the refusal of values that a recording cannot hold."""

from collections import deque

import msgspec
import numpy as np
import pytest

from spectrod.dsp.conditions import Condition
from spectrod.formats.description import ELAPSED, TIME_REFERENCE
from spectrod.lib.errors import ConfigError, UnavailableError, WireError
from spectrod.recording.remote import DaemonReader
from spectrod.wire.headers import MetaHeader
from spectrod.wire.schema import Frame, LevelsFrame, LevelsHeader, Meta, SpectrumHeader

NFFT = 64


class Subscribed:
    """A subscription that has received the given frames and gets no more."""

    def __init__(self, *frames):
        self._frames, self.meta = deque(frames), {}

    def receive(self, _timeout_s):
        return self._frames.popleft() if self._frames else None


def make_frame(row, channel="0", *, topic=None, restarted=False, **fields):
    header = SpectrumHeader(
        seq=row,
        epoch=1,
        t_utc_ns=10**18 + row * 10**6,
        t_mono_ns=row,
        sample_index=row * 32,
        fs=48000.0,
        win_length=NFFT,
        nfft=NFFT,
        hop=32,
        window="hann",
        enbw_hz=1125.0,
        shape=(NFFT // 2 + 1,),
        unit="dBFS",
        ref="",
        engine="numpy",
    )
    header = msgspec.structs.replace(header, **fields)
    values = np.zeros(header.shape, np.float32)
    return Frame(topic or f"spec/mic/{channel}/dbfs/", header, values, restarted=restarted)


def rows(n, **fields):
    """Make frames of rows of two channels."""
    return [make_frame(row, channel, **fields) for row in range(n) for channel in "01"]


def read(*frames):
    """Read the sample indices of the rows that frames make."""
    reader = DaemonReader(Subscribed(*frames), "spec/", timeout_s=0.0)
    stop_s = 1e12  # the frames end early
    batches = reader.batches(stop_s)
    return [int(next(batches).sample_index[0]) for _ in range(3)]


def test_the_frames_of_these_tests_make_rows():
    """The frames used in these tests are valid rows, so the refusals have other causes."""
    assert read(*rows(6)) == [96, 128, 160]


def described(**stated):
    """Return the description of rows whose daemon states something of the place."""
    subscribed = Subscribed(*rows(6))
    header = MetaHeader(
        seq=0, epoch=1, t_utc_ns=0, device="a card", channels=2, fs=48000.0, win_length=NFFT,
        nfft=NFFT, hop=32, window="hann", enbw_hz=1125.0, shape=(1,), unit="dBFS", ref="",
        engine="numpy", **stated,
    )  # fmt: skip
    subscribed.meta["spec/mic/0/dbfs/"] = Meta("meta/mic/0/dbfs/", header, np.zeros(1), None)
    return DaemonReader(subscribed, "spec/", timeout_s=0.0).description


def test_a_recording_has_the_place_that_a_description_states():
    """Places of sources are taken over; a peer sets no other attribute, such as the time's."""
    place = {"platform": "buoy", "geospatial_lat_min": "54.5"}
    others = {TIME_REFERENCE: ELAPSED, "history": "x", "time_zone": "Europe/Berlin"}
    about = described(attributes=place | others)
    assert about.attributes == place
    assert about.has_utc


def test_a_recording_has_the_time_zone_that_a_description_states(caplog):
    """With or without attributes; a name that this machine does not know is a line of the log."""
    zone = {"time_zone": "Asia/Kolkata"}
    assert described(**zone).attributes == zone
    assert described(**zone, attributes={"platform": "a"}).attributes == {"platform": "a"} | zone
    assert caplog.messages == []
    for name, said in (("Mars/\x1b[1m", r"Mars/\x1b[1m"), ("local", "local"), ("", "")):
        assert described(time_zone=name).attributes == {}
        rule = "there is no such time zone on this machine; it is ignored"
        assert caplog.messages.pop() == f"spec/mic/0/dbfs/: time_zone={said!r}: {rule}"
        caplog.clear()


def test_rows_have_the_conditions_that_messages_say():
    """A channel whose daemon says nothing was not checked; rows without any word have none."""
    frames = rows(8)
    frames[4] = make_frame(2, "0", conditions=("clipping", "humming"))
    frames[6] = make_frame(3, "0", conditions=())
    frames[7] = make_frame(3, "1", conditions=("dc",))
    batches = DaemonReader(Subscribed(*frames), "spec/", timeout_s=0.0).batches(1e12)
    found = {int(one.sample_index[0]): one.conditions for one in (next(batches) for _ in range(3))}
    checked = Condition.CHECKED
    assert found[3 * 32].tolist() == [[checked, checked | Condition.DC]]
    assert found[4 * 32] is None


def test_spectra_of_a_receiver_keep_its_frequency():
    """The description keeps a centre frequency, except for one-sided spectra."""
    radio = {"first_bin": -(NFFT // 2), "shape": (NFFT,), "center_frequency_hz": 433.92e6}
    spec = DaemonReader(Subscribed(*rows(3, **radio)), "spec/", timeout_s=0.0).description.spec
    assert (spec.iq, spec.channels, spec.center_frequency_hz) == (True, 4, 433.92e6)
    np.testing.assert_array_equal(spec.frequencies, make_frame(0, **radio).f)
    real = rows(3, center_frequency_hz=433.92e6)
    spec = DaemonReader(Subscribed(*real), "spec/", timeout_s=0.0).description.spec
    assert (spec.iq, spec.center_frequency_hz) == (False, 0.0)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"unit": "furlong"}, "spec/mic/0/dbfs/: unit='furlong': must be one of FS"),
        ({"unit": "\x1b[2J"}, r"unit='\\\\x1b\[2J': must be one of"),
        ({"window": "round"}, "window='round': must be"),
        ({"weighting": "Q"}, "weighting='Q': must be one of"),
        ({"averaging": "median"}, "averaging='median': must be one of"),
        ({"hop": 2**62}, "hop=4611686018427387904: must be at most 2147483647 samples"),
    ],
)
def test_a_description_that_cannot_be_recorded_is_refused(fields, rule):
    """A description that this version does not know is refused in one line with the value."""
    with pytest.raises(ConfigError, match=rule) as caught:
        read(*rows(6, **fields))
    assert str(caught.value).isprintable()


def test_frames_of_another_channel_in_the_middle_of_a_row_are_refused():
    """A row of two channels refuses a frame of a third one."""
    with pytest.raises(ConfigError, match="spec/mic/7/dbfs/: the daemon's channels have changed"):
        read(*rows(4), make_frame(4), make_frame(4, "7"))


def test_a_longer_frame_in_the_middle_of_a_row_is_refused():
    """A frame in a row refuses a number of values different from that of the others."""
    longer = make_frame(4, "1", nfft=128, shape=(65,))
    with pytest.raises(ConfigError, match="spec/mic/1/dbfs/: the daemon's analysis has changed"):
        read(*rows(4), make_frame(4), longer)


def test_more_channels_than_a_source_can_have_are_refused():
    """A daemon that names ever new channels at one time is refused at the limit."""
    with pytest.raises(ConfigError, match="spec/: more than 4096 channels at one time"):
        read(*(make_frame(0, str(k)) for k in range(10_000)))


@pytest.mark.parametrize(
    "changes",
    [
        {"sample_index": 2**63 - 1},
        {"t_utc_ns": 2**63 - 1, "restarted": True, "fs": 1e10},
    ],
)
def test_times_beyond_any_recording_are_refused(changes):
    """Neither an index nor the duration of an absence overflows 64 bits."""
    fs = changes.get("fs", 48000.0)
    last = [make_frame(6, channel, **changes) for channel in "01"]
    with pytest.raises(WireError, match=r"sample_index=.*: index \d+ of the recording is above"):
        read(*rows(4, fs=fs), *last)


def test_a_recording_without_any_frame_is_an_error():
    """Without any frame there is an error that says so."""
    with pytest.raises(UnavailableError, match="spec/: no spectra came in 0 s"):
        read()


@pytest.mark.parametrize("n_before", [0, 1])
def test_named_values_are_refused(n_before):
    """Messages of levels, features and tones are no rows of spectra, also behind the first."""
    header = LevelsHeader(
        seq=0,
        epoch=1,
        t_utc_ns=10**18,
        t_mono_ns=0,
        sample_index=0,
        fs=48000.0,
        interval_s=1.0,
        n_samples=48000,
        due_samples=48000,
        quantities=("LAeq",),
        units=("dBFS",),
        shape=(1,),
        ref="",
    )
    levels = LevelsFrame("levels/mic/0/meter/", header, np.zeros(1))
    with pytest.raises(ConfigError, match="levels/mic/0/meter/: has measurements"):
        read(*rows(1)[:n_before], levels)
