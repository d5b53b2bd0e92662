import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from spectrod.apps.view.axes import frequency_axis, level_range
from spectrod.apps.view.colour import BEHIND, N_SHADES, RESET, Style, shade, style_for
from spectrod.apps.view.render import HistoryRow, Scene, render
from spectrod.apps.view.status import status_line
from spectrod.wire.schema import Frame, SpectrumHeader

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
NFFT = 4096


def make_frame(levels, *, unit="dBFS", engine="numpy", nfft=NFFT):
    header = SpectrumHeader(
        seq=41,
        epoch=1,
        t_utc_ns=0,
        t_mono_ns=0,
        sample_index=0,
        fs=48000.0,
        win_length=nfft,
        nfft=nfft,
        hop=1024,
        window="hann",
        enbw_hz=17.6,
        shape=(nfft // 2 + 1,),
        unit=unit,
        ref="",
        engine=engine,
        dropped=2,
        overflows=1,
    )
    return Frame("spec/mic/0/dbfs/", header, levels.astype(np.float32))


def tone_levels(k=86, level_db=-20.0, nfft=NFFT):
    """Make levels of a sine on bin k under a Hann window, over a floor of -110 dB."""
    levels = np.full(nfft // 2 + 1, -110.0)
    levels[k - 1 : k + 2] = level_db - 6.02, level_db, level_db - 6.02
    return levels


def make_scene(**fields):
    levels = tone_levels()
    scene = Scene(
        "tcp://127.0.0.1:5556",
        now_s=100.0,
        daemon_state="running",
        alive=True,
        frame=make_frame(levels),
        levels=levels,
        history=[HistoryRow(100.0 - 0.05 * k, levels) for k in range(50)],
        channels=["mic/0"],
        missed=3,
    )
    return replace(scene, **fields)


def text_of(lines):
    return [ESCAPES.sub("", line) for line in lines]


@pytest.mark.parametrize("depth", ["none", "256", "24-bit"])
@pytest.mark.parametrize(
    ("width", "height"), [(200, 60), (101, 41), (80, 24), (30, 10), (29, 9), (12, 3), (1, 1)]
)
def test_the_picture_fits_its_room(width, height, depth):
    """In any size, with or without colours, the picture exceeds neither width nor height."""
    meters = [f"{name}  LAeq -20.0 dBFS  LAFmax -10.0 dBFS" for name in "abc"]
    lines = text_of(render(make_scene(meters=meters), width, height, Style(depth)))
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    if width >= 30 and height >= 10:
        assert len(lines) == height


def test_the_head_describes_the_picture():
    """The header shows source, rate, window, lengths, engine, peak and losses."""
    head = render(make_scene(), 120, 30, Style())[:2]
    assert head[0] == "mic/0  48000 Hz  hann 4096  N 4096  hop 1024  numpy"
    assert head[1].startswith("peak 1007.8 Hz -20.0 dBFS")
    assert head[1].endswith("seq 41  missed 3  dropped 2  overflows 1  gap 0")


def test_a_narrow_head_keeps_the_device_and_the_losses():
    """In 80 columns the engine loses its platform, then its end; the losses are whole."""
    scene = make_scene()
    head = render(scene, 80, 30, Style())[:2]
    assert head[1].endswith("  missed 3  dropped 2  overflows 1  gap 0")
    assert "seq" not in head[1]
    long = "opencl:Portable Computing Language/pthread-AMD EPYC 9654 96-Core Processor"
    scene.frame = replace(
        scene.frame, header=msgspec.structs.replace(scene.frame.header, engine=long)
    )
    first = [render(scene, width, 30, Style())[0] for width in (160, 100, 80)]
    before = "mic/0  48000 Hz  hann 4096  N 4096  hop 1024  "
    assert first == [
        before + long,
        before + "opencl:pthread-AMD EPYC 9654 96-Core Processor",
        before + "opencl:pthread-AMD EPYC 9654 96-..",
    ]


def test_the_tone_stands_at_its_frequency_and_level():
    """The highest bar is in the tone's column, with its top at -20 dB of the scale."""
    width, height = 107, 41
    lines = render(make_scene(), width, height, Style())
    axis = frequency_axis(48000.0, NFFT, width - 7)
    spectrum = [line for line in lines if "│" in line][:14]
    column = 7 + axis.column(86 * 48000.0 / NFFT)
    tops = [row for row, line in enumerate(spectrum) if line[column : column + 1].strip()]
    assert tops[0] == int(20 / (120 / 14))
    assert all(not line[7:column].strip() for line in spectrum[: tops[0] + 1])


def test_the_scales_are_labelled():
    """Levels are labelled at the left, frequencies below, ages beside the waterfall."""
    lines = render(make_scene(), 110, 40, Style())
    assert [line[:6].strip() for line in lines if re.match(r" *-?\d+│", line)] == [
        "0",
        "-20",
        "-40",
        "-60",
        "-80",
        "-100",
    ]
    labels = next(line for line in lines if line.startswith(" Hz")).split()
    assert labels == ["Hz", "20", "50", "100", "200", "500", "1k", "2k", "5k", "10k", "20k"]
    assert [line[:6].strip() for line in lines if "s│" in line][:2] == ["0.0s", "0.2s"]


def test_the_newest_row_of_the_waterfall_is_on_top():
    """The newest row of the waterfall is on top and older ones follow."""
    quiet = np.full(NFFT // 2 + 1, -120.0)
    history = [HistoryRow(100.0, tone_levels()), HistoryRow(99.9, quiet)]
    lines = render(make_scene(history=history), 80, 24, Style())
    rows = [line[7:] for line in lines if "s│" in line or line.startswith("      │")]
    newest = next(index for index, line in enumerate(lines) if line.startswith("  0.0s│"))
    assert lines[newest].strip("0.s│ ")
    assert not lines[newest + 1][7:].strip()
    assert rows


def test_in_colour_a_line_holds_two_rows():
    """With colours a line holds two rows, the newer one in the upper half."""
    loud, quiet = np.zeros(NFFT // 2 + 1), np.full(NFFT // 2 + 1, -120.0)
    history = [HistoryRow(100.0, loud), HistoryRow(99.9, quiet)]
    style = Style("24-bit")
    lines = render(make_scene(history=history), 80, 24, style)
    line = next(line for line in lines if line.startswith("  0.0s│"))
    pen = style.switch(0, shade(N_SHADES - 1) + BEHIND * shade(0))
    assert pen == "\x1b[38;2;252;255;164;48;2;0;0;4m"
    assert line == f"  0.0s│{pen}{'▀' * 73}{RESET}"


def test_without_colour_there_is_no_escape_sequence():
    """With NO_COLOR there is no escape sequence, alarms included."""
    for alive in (True, False):
        assert "\x1b" not in "".join(render(make_scene(alive=alive), 100, 40, Style()))


def test_a_peers_escape_sequences_do_not_reach_the_terminal():
    """Escape sequences in a peer's header do not reach the terminal."""
    levels = tone_levels()
    frame = make_frame(levels, engine="\x1b]0;evil\x07ü", unit="dB\x1b[2J")
    text = "\n".join(render(make_scene(frame=frame), 100, 40, Style()))
    assert "\x1b" not in text
    assert r"\x1b]0;evil\x07?" in text


def test_waiting_names_the_reason():
    """Before the first message the endpoint is shown, before the first frame the state."""
    scene = Scene("tcp://127.0.0.1:5556")
    assert render(scene, 80, 24, Style()) == ["waiting for tcp://127.0.0.1:5556"]
    scene = Scene("ipc://x", alive=True, daemon_state="starting")
    assert render(scene, 80, 24, Style()) == [
        "waiting for ipc://x: the daemon is starting, no spectrum yet"
    ]


def test_the_reason_of_an_absent_source_is_shown():
    """The reason of a waiting source is shown beside the keys, or alone before a spectrum."""
    away = {"daemon_state": "waiting", "waiting_for": "no \x1b[2Jinput"}
    foot = render(make_scene(**away), 80, 24, Style())[-1]
    assert foot == "the daemon is waiting: no \\x1b[2Jinput"
    scene = Scene("ipc://x", alive=True, **away)
    assert render(scene, 80, 24, Style()) == [
        "waiting for ipc://x: the daemon is waiting: no \\x1b[2Jinput"
    ]
    # A dead daemon's last reason is not shown.
    gone = render(make_scene(alive=False, silence_s=4.0, **away), 80, 24, Style())[-1]
    assert gone == "no signal since 4.0 s"


def test_suspected_losses_are_shown():
    """Suspected losses are shown only if there are any."""
    frame = make_frame(tone_levels())
    lossy = replace(frame, header=msgspec.structs.replace(frame.header, suspected=7))
    head = render(make_scene(frame=lossy), 120, 30, Style())[1]
    assert head.endswith("overflows 1  suspected 7  gap 0")


@pytest.mark.parametrize("nfft", [64, 65, 4096, 8191])
@pytest.mark.parametrize("columns", [1, 23, 100, 300])
def test_a_two_sided_axis_shows_every_bin_in_its_place(nfft, columns):
    """A two-sided axis shows every bin, from the lowest frequency to the highest, evenly."""
    first_bin = -(nfft // 2)
    axis = frequency_axis(48000.0, nfft, columns, first_bin)
    delta_f = 48000.0 / nfft
    shown = []
    for k in np.unique(np.linspace(0, nfft - 1, 25).astype(int)):
        levels = np.full(nfft, -100.0)
        levels[k] = 0.0
        columns_shown = np.flatnonzero(axis.reduce(levels) == 0.0)
        assert columns_shown.size
        assert np.abs(columns_shown - axis.column((first_bin + k) * delta_f)).min() <= 1
        shown.append(columns_shown[0])
    assert shown == sorted(shown)
    assert (shown[0], axis.columns) == (0, columns)


def test_a_two_sided_picture_has_its_tone_below_zero():
    """A two-sided picture shows a peak below zero, and round labels on both sides of 0 Hz."""
    levels = np.full(NFFT, -110.0)
    k = NFFT // 2 - 512  # -6 kHz
    levels[k - 1 : k + 2] = -26.02, -20.0, -26.02
    frame = make_frame(levels)
    header = msgspec.structs.replace(frame.header, shape=(NFFT,), first_bin=-NFFT // 2)
    frame = replace(frame, header=header)
    scene = make_scene(frame=frame, levels=levels, history=[HistoryRow(100.0, levels)])
    lines = render(scene, 107, 41, Style())
    assert lines[1].startswith("peak -6000.0 Hz -20.0 dBFS")
    labels = next(line for line in lines if line.startswith(" Hz")).split()
    assert labels == ["Hz", "-20k", "-15k", "-10k", "-5k", "0", "5k", "10k", "15k", "20k"]


def test_the_time_since_the_last_message_is_shown():
    """A dead daemon's last picture stays, with the time since its last message."""
    foot = render(make_scene(alive=False, silence_s=4.25), 80, 24, Style())[-1]
    assert foot == "no signal since 4.2 s"
    scene = make_scene(alive=False, silence_s=1.0, daemon_state="stopped")
    assert render(scene, 80, 24, Style())[-1] == "no signal since 1.0 s: the daemon has stopped"


def test_the_keys_are_named():
    """Channel keys are shown only with several channels."""
    assert render(make_scene(), 80, 24, Style())[-1].startswith("q quit  ? help  tcp://")
    scene = make_scene(channels=["mic/0", "mic/1", "mic/2"])
    assert render(scene, 80, 24, Style())[-1].startswith("q quit  1-3 channel  ? help  tcp://")


@pytest.mark.parametrize("nfft", [64, 65, 4096, 8191])
@pytest.mark.parametrize("columns", [1, 23, 100, 300])
def test_every_bin_from_the_axis_start_is_in_its_column(nfft, columns):
    """A tone on any bin appears in the column of its frequency."""
    axis = frequency_axis(48000.0, nfft, columns)
    delta_f = 48000.0 / nfft
    first = int(np.ceil(axis.lowest_hz / delta_f))
    for k in np.unique(np.geomspace(max(first, 1), nfft // 2, 25).astype(int)):
        levels = np.full(nfft // 2 + 1, -100.0)
        levels[k] = 0.0
        column = axis.column(k * delta_f)
        shown = np.flatnonzero(axis.reduce(levels) == 0.0)
        assert shown.size
        assert np.abs(shown - column).min() <= 1


def test_the_level_range_follows_the_unit():
    """The level range follows the unit, and values outside are clipped."""
    assert (level_range("dBFS").bottom_db, level_range("dBFS").top_db) == (-120.0, 0.0)
    assert level_range("FS^2/Hz").top_db == -20.0
    np.testing.assert_array_equal(
        level_range("dBFS").fraction(np.array([-200.0, -60.0, 3.0])), [0.0, 0.5, 1.0]
    )


@pytest.mark.parametrize(
    ("environment", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "24-bit"),
        ({"TERM": "xterm-256color", "COLORTERM": "24bit"}, "24-bit"),
        ({"TERM": "screen-256color"}, "256"),
        ({"TERM": "vt100"}, "none"),
        ({}, "none"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "256"),
    ],
)
def test_colours_follow_the_terminal(environment, depth):
    """COLORTERM, then TERM, select the colours; a NO_COLOR that is not empty overrides both."""
    assert style_for(environment).depth == depth


def test_the_status_line_of_a_frame_is_one_line():
    """Without a terminal a frame is shown as one line."""
    assert status_line(make_frame(tone_levels()), missed=5) == (
        "mic/0  peak 1007.8 Hz -20.0 dBFS  seq 41  missed 5  dropped 2  overflows 1  gap 0"
    )


@pytest.mark.parametrize("fs", [1e-3, 48000.0, 61.44e6, 1e10, 1e14])
@pytest.mark.parametrize(("nfft", "first_bin"), [(64, -32), (65, -32), (64, 0), (2**20, -(2**19))])
@pytest.mark.parametrize("columns", [1, 40, 400])
def test_an_axis_has_no_more_ticks_than_columns(fs, nfft, first_bin, columns):
    """An axis for any claimed sample rate has at most as many ticks as columns."""
    ticks = frequency_axis(fs, nfft, columns, first_bin).ticks()
    assert len(ticks) <= max(5, columns)
    assert all(0 <= column < columns for column, _ in ticks)
    assert not first_bin or "0" in [label for _, label in ticks]


@pytest.mark.parametrize(
    ("fs", "labels"),
    [(0.01, ["-0.002", "0", "0.002"]), (2e6, ["-500k", "0", "500k"]), (1e10, ["-2G", "0", "2G"])],
)
def test_a_two_sided_axis_has_round_labels_at_any_sample_rate(fs, labels):
    """A two-sided axis has round labels from the lowest to the highest sample rates."""
    ticks = [label for _, label in frequency_axis(fs, 64, 40, -32).ticks()]
    assert ticks[len(ticks) // 2 - 1 : len(ticks) // 2 + 2] == labels
