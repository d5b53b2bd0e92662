"""Lines of sound levels in the terminal view."""

import math

import numpy as np
import pytest

from spectrod.apps.view.live import values_prefix
from spectrod.apps.view.meters import LINES_MAX, Meters
from spectrod.apps.view.player import Player
from spectrod.apps.view.scene import Scene
from spectrod.wire.schema import LevelsFrame, LevelsHeader, TransferFrame, TransferHeader

NAMES = ("LAeq", "LAFmax", "LUFS_S", "true_peak", "dc")
UNITS = ("dB SPL", "dB SPL", "LUFS", "dBTP", "FS")


def frame(values, product="meter", *, channel="0", names=NAMES, units=UNITS, **fields):
    header = LevelsHeader(
        **{
            "seq": 1, "epoch": 7, "t_utc_ns": 0, "t_mono_ns": 0, "sample_index": 0, "fs": 48000.0,
            "interval_s": 1.0, "n_samples": 48000, "due_samples": 48000, "quantities": names,
            "units": units, "shape": (len(names),), "ref": "0 dB = 20 uPa", **fields,
        }
    )  # fmt: skip
    return LevelsFrame(f"levels/mic/{channel}/{product}/", header, np.array(values, np.float64))


def transfer(product, channel="right"):
    header = TransferHeader(
        seq=1, epoch=7, t_utc_ns=0, t_mono_ns=0, sample_index=0, fs=48000.0, interval_s=1.0,
        n_samples=48000, due_samples=48000, quantities=("delay", "level_difference", "coherence"),
        units=("s", "dB", "1"), shape=(3,), ref="0 dB = full-scale sine", reference="left",
        window="hann", win_length=64, nfft=64, hop=32, n_frames=9, band_hz=(0.0, 24e3),
    )  # fmt: skip
    values = np.array([0.000104, -6.02, 0.98765])
    return TransferFrame(f"transfer/mic/{channel}/{product}/", header, values)


def heard(*frames):
    meters = Meters()
    for one in frames:
        meters.hear(one, 100.0)
    return meters


def test_a_line_has_values_units_held_peaks_and_flags():
    """Values are followed by their units, peaks by the highest one so far, and flags come last."""
    meters = heard(
        frame([62.34, 71.0, -23.06, -1.1, 0.00123]),
        frame([60.0, 65.55, math.nan, -3.2, 0.0], flags=("overload", "gap")),
    )
    assert meters.lines("mic/0", 100.0) == [
        (
            "meter  LAeq 60.0  LAFmax 65.5 dB SPL  LUFS_S - LUFS  true_peak -3.2 (max -1.1) dBTP  "
            "dc 0 FS  overload,gap"
        )
    ]


def test_a_transfer_function_names_its_reference_and_its_units():
    """Delays are in milliseconds, and shares without a unit."""
    meters = heard(transfer("pair"))
    assert meters.lines("mic/right", 100.0) == [
        "pair re left  delay 0.104 ms  level_difference -6.0 dB  coherence 0.9877"
    ]


def test_a_long_message_leaves_room_for_its_flags():
    """Of a message with bands, the line has the first 16 values and how many more there are."""
    names, units = tuple(f"L{k}" for k in range(242)), ("dBFS",) * 242
    (line,) = heard(frame(range(242), names=names, units=units, flags=("gap",))).lines(
        "mic/0", 100.0
    )
    assert line.startswith("meter  L0 0.0  L1 1.0  ")
    assert line.endswith("  L15 15.0 dBFS  and 226 more  gap")


def test_held_peaks_are_reset():
    """A reset forgets the highest peak, and so does a change of units, calibration or daemon."""
    loud, soft = frame([0, 0, 0, -1.0, 0]), frame([0, 0, 0, -9.0, 0])
    meters = heard(loud)
    meters.reset()
    meters.hear(soft, 100.0)
    assert "true_peak -9.0 (max -9.0) dBTP" in meters.lines("mic/0", 100.0)[0]
    for change in ({"epoch": 8}, {"cal_id": "M1"}, {"units": ("dBFS", *UNITS[1:])}):
        changed = heard(loud, frame([0, 0, 0, -9.0, 0], **change))
        assert "(max -9.0)" in changed.lines("mic/0", 100.0)[0]
    assert "(max -1.0)" in heard(loud, soft).lines("mic/0", 100.0)[0]


def test_a_reset_shows_the_last_message_again():
    """Between a reset and the next message the last values are shown, without a maximum."""
    meters = heard(frame([0, 0, 0, -1.0, 0]))
    meters.reset()
    assert "true_peak -1.0 dBTP" in meters.lines("mic/0", 100.0)[0]


@pytest.mark.parametrize(("interval_s", "kept_s"), [(0.1, 3.0), (1.0, 3.0), (60.0, 180.0)])
def test_levels_that_no_longer_come_are_not_shown(interval_s, kept_s):
    """A line disappears when three intervals, or 3 s, pass without a message."""
    meters = heard(frame([0] * 5, interval_s=interval_s))
    assert len(meters.lines("mic/0", 100.0 + kept_s)) == 1
    assert not meters.lines("mic/0", 100.1 + kept_s)


def test_lines_are_those_of_the_channel_and_bounded():
    """The first three products by name of the visible channel have a line."""
    others = [frame([0] * 5, name) for name in ("d", "b", "c", "a")]
    meters = heard(frame([0] * 5, "x", channel="1"), *others)
    lines = meters.lines("mic/0", 100.0)
    assert [line[:1] for line in lines] == ["a", "b", "c"]
    assert len(lines) == LINES_MAX
    assert len(meters.lines("mic/1", 100.0)) == 1
    assert not meters.lines("pond/0", 100.0)


def test_levels_stand_above_other_kinds():
    """Whatever its name, a product of levels is not among those that are left out."""
    meters = heard(*(transfer(name, "0") for name in "abc"), frame([0] * 5, "z"))
    assert [line[:1] for line in meters.lines("mic/0", 100.0)] == ["z", "a", "b"]


def test_messages_cannot_control_the_terminal():
    """Names, units and flags of a message are shown without control characters."""
    hostile = frame([1.0], names=("\x1b[2J",), units=("\x1b]0;x\x07",), flags=("\x1b[31m",))
    (line,) = heard(hostile).lines("mic/0", 100.0)
    assert "\x1b" not in line
    assert "\x07" not in line


def test_a_flood_of_topics_keeps_the_newest():
    """Of 3000 topics the newest 1024 are kept."""
    meters = heard(*(frame([0] * 5, channel=str(k)) for k in range(3000)))
    assert not meters.lines("mic/1975", 100.0)
    assert meters.lines("mic/1976", 100.0)


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("spec/", "levels/"),
        ("spec/mi", "levels/mi"),
        ("spec/mic/", "levels/mic/"),
        ("spec/mic/0", "levels/mic/0"),
        ("spec/mic/0/dbfs/", "levels/mic/0/"),
        ("spec/mic/0/db", "levels/mic/0/"),
    ],
)
def test_values_are_of_the_same_channels_as_the_spectra(prefix, expected):
    """The prefix of measurements selects the sources and channels of the prefix of spectra."""
    assert values_prefix("levels", prefix) == expected
    assert values_prefix("transfer", prefix) == expected.replace("levels", "transfer")


class LevelsAlone:
    """A subscription that has received one message of sound levels, and no spectrum."""

    alive, silence_s, missed, heartbeat = True, 0.0, 0, None

    def __init__(self):
        self.heartbeats = {}

    def receive(self, _wait_s):
        return frame([0.0] * 5)

    def drain(self):
        return []


def test_levels_may_come_before_the_first_spectrum():
    """Sound levels that arrive alone leave the view waiting for a spectrum."""
    player = Player(LevelsAlone(), Scene("tcp://127.0.0.1:5556"))
    player.update(0.0)
    assert player.scene.frame is None
    assert player.scene.meters == []
