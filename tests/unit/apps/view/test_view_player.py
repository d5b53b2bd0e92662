"""What the terminal view makes of the messages that come."""

from collections import deque

import numpy as np
import pytest

from spectrod.apps.view.colour import Style
from spectrod.apps.view.live import ViewOptions
from spectrod.apps.view.player import OVERLAID_MAX, Player
from spectrod.apps.view.render import render
from spectrod.apps.view.scales import AXIS_KINDS
from spectrod.apps.view.scene import Scene, first_text
from spectrod.apps.view.selection import CHANNELS_MAX
from spectrod.lib.errors import WireError
from spectrod.wire.schema import Frame, SpectrumHeader

N_BINS = 129


def make_frame(channel="0", level_db=-20.0, source="mic", k=40, **fields):
    header = SpectrumHeader(
        **{
            "seq": 0, "epoch": 1, "t_utc_ns": 0, "t_mono_ns": 0, "sample_index": 0, "fs": 48000.0,
            "win_length": 256, "nfft": 256, "hop": 128, "window": "hann", "enbw_hz": 281.25,
            "shape": (N_BINS,), "unit": "dBFS", "ref": "", "engine": "numpy", **fields,
        }
    )  # fmt: skip
    levels = np.full(N_BINS, -100.0, np.float32)
    levels[k - 1 : k + 2] = level_db - 6.02, level_db, level_db - 6.02
    return Frame(f"spec/{source}/{channel}/dbfs/", header, levels)


class FakeSubscription:
    """Delivers given frames and errors, then nothing."""

    alive, silence_s, missed, heartbeat = True, 0.0, 0, None

    def __init__(self):
        self.heartbeats = {}
        self.arrived = deque()

    def silence_hint(self):
        return ""

    def receive(self, _wait_s):
        if not self.arrived:
            return None
        one = self.arrived.popleft()
        if isinstance(one, Exception):
            raise one
        return one


@pytest.fixture
def player():
    return Player(FakeSubscription(), Scene("ipc://x"))


def show(player, *arrived):
    player._subscription.arrived.extend(arrived)
    player.update(0.0)
    return player.scene


def test_invalid_messages_are_counted_and_stop_nothing(player):
    """Messages that break the protocol are counted with the last reason; others are shown."""
    scene = show(player, WireError("bad\x1b[2J"), WireError("header: too long"))
    assert first_text(scene) == (
        "waiting for ipc://x: invalid messages: 2; the last one: header: too long"
    )
    show(player, WireError("again"), make_frame(), WireError("short"))
    assert scene.n_invalid == 4
    assert scene.frame is not None


def test_a_flood_of_messages_leaves_time_for_keys(player):
    """One picture takes at most 1000 messages, valid or not."""
    show(player, *[WireError("x"), make_frame()] * 1000)
    assert player.scene.n_invalid == 500
    assert len(player._subscription.arrived) == 1000


def test_channels_are_bounded(player):
    """A flood of channel names keeps the newest 1024 and the oldest no longer."""
    for first in range(0, 3000, 500):
        show(player, *(make_frame(str(k)) for k in range(first, first + 500)))
    assert len(player.scene.channels) == CHANNELS_MAX
    assert "mic/2999" in player.scene.channels


def test_a_channel_is_shown_from_its_first_frame():
    """A channel that was asked for is shown when it comes; until then the first one is."""
    player = Player(FakeSubscription(), Scene("ipc://x"), "mic/2")
    assert show(player, make_frame("0")).frame.channel == "0"
    assert show(player, make_frame("0"), make_frame("2")).frame.channel == "2"
    player.choose("1")
    assert show(player, make_frame("0"), make_frame("2")).frame.channel == "0"


def test_the_first_channel_is_shown_if_the_others_of_its_time_come_before_it(player):
    """A subscription may start between two channels; a channel that comes later takes no place."""
    assert show(player, make_frame("1")).frame.channel == "1"
    assert show(player, make_frame("0")).frame.channel == "0"
    scene = show(player, make_frame("1"), make_frame("0"), make_frame("0", source="hut"))
    assert (scene.frame.source, scene.frame.channel) == ("mic", "0")
    assert scene.channels == ["hut/0", "mic/0", "mic/1"]


def test_a_channel_that_was_chosen_keeps_its_place(player):
    """One that is before it and comes then does not replace it."""
    show(player, make_frame("1"), make_frame("2"))
    player.choose("\t")
    assert show(player, make_frame("0"), make_frame("2")).frame.channel == "2"


def test_tab_goes_through_all_channels(player):
    """Tab selects one channel after the other, and the first after the last."""
    frames = [make_frame(str(k)) for k in range(12)]
    show(player, *frames)
    shown = []
    for _ in range(12):
        player.choose("\t")
        shown.append(show(player, *frames).frame.channel)
    assert shown == [*map(str, range(1, 12)), "0"]


def test_holds_are_traces_until_they_are_switched_off(player):
    """Keys switch holds on and off; c and another channel begin them again."""
    show(player, make_frame(level_db=-10.0))
    for key in "mnv":
        player.choose(key)
    scene = show(player, make_frame(level_db=-30.0), make_frame(level_db=-20.0))
    levels = {trace.name: trace.levels[40] for trace in scene.traces}
    assert (levels["max"], levels["min"]) == (-20.0, -30.0)
    assert levels["mean"] == pytest.approx(10.0 * np.log10((1e-2 + 1e-3) / 2.0))
    player.choose("c")
    assert show(player, make_frame(level_db=-50.0)).traces[0].levels[40] == -50.0
    for key in "mnv":
        player.choose(key)
    assert not show(player, make_frame()).traces


def test_a_pause_stops_holds_too(player):
    """While the picture is paused, no row counts."""
    player.choose("m")
    show(player, make_frame(level_db=-30.0))
    player.choose(" ")
    show(player, make_frame(level_db=-10.0))
    player.choose(" ")
    assert show(player, make_frame(level_db=-40.0)).traces[0].levels[40] == -30.0


def test_channels_over_each_other_are_bounded_and_alike(player):
    """At most eight channels of the same axes are shown, the visible one by itself."""
    player.choose("o")
    other_unit = make_frame("3", unit="FS^2")
    frames = [make_frame(str(k), -10.0 - k) for k in range(20) if k != 3]
    scene = show(player, *frames, other_unit)
    names = [trace.name for trace in scene.traces]
    assert names == [f"mic/{k}" for k in range(1, OVERLAID_MAX) if k != 3]
    assert scene.traces[0].levels[40] == -11.0
    player.choose("o")
    assert not show(player, *frames).traces


def test_peaks_are_listed_while_the_list_is_on(player):
    """The list has the peaks of the visible channel, and none when it is off."""
    player.choose("l")
    scene = show(player, make_frame(level_db=-20.0))
    assert [round(peak.frequency_hz) for peak in scene.peaks] == [7500]
    player.choose("l")
    assert show(player, make_frame()).peaks is None


def test_levels_that_follow_fit_at_once_and_then_stay(player):
    """With A the levels fit the spectrum, and follow a louder one; by hand they stay."""
    player.choose("A")
    scene = show(player, make_frame(level_db=-23.0))
    assert scene.look.levels.top_db == -20.0
    player._fit_due_s = 0.0
    assert show(player, make_frame(level_db=-3.0)).look.levels.top_db == 0.0
    player.choose("up")
    assert not scene.look.is_fitting
    player._fit_due_s = 0.0
    assert show(player, make_frame(level_db=-60.0)).look.levels.top_db == 10.0


def test_another_analysis_forgets_rows_and_holds(player):
    """Rows and holds of another number of bins are forgotten when the analysis changes."""
    player.choose("m")
    show(player, make_frame(level_db=-10.0))
    short = make_frame(nfft=64, win_length=64, shape=(33,), k=20)
    short = Frame(short.topic, short.header, short.values[:33])
    scene = show(player, short)
    assert len(scene.history) == 1
    assert scene.traces[0].levels.shape == (33,)


def test_values_that_no_level_has_end_nothing(player):
    """Holds, peaks, fitted levels and the picture bear NaN, infinities and any sample rate."""
    for key in "mnvlAo":
        player.choose(key)
    rng = np.random.default_rng(1)
    odd = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, -50.0], np.float32)
    for fs in (48000.0, 1e-3, 1e9):
        for _ in range(20):
            frame = make_frame(fs=fs, channel=str(rng.integers(3)))
            values = rng.choice(odd, N_BINS)
            player._fit_due_s = player._list_due_s = 0.0
            scene = show(player, Frame(frame.topic, frame.header, values))
            for axis in AXIS_KINDS:
                scene.look.axis = axis
                assert len(render(scene, 100, 30, Style("24-bit"))) == 30


def test_options_begin_with_defaults():
    """Without options the look is the default one, and each view has a look of its own."""
    assert ViewOptions().look == ViewOptions().look
    assert ViewOptions().look is not ViewOptions().look
