"""The checks of the soak: each of them finds what it is for."""

import os
import select
from contextlib import suppress

import numpy as np
import pytest
import soundfile

from spectrod.apps.bench.fault_soak.feeder import Feeder
from spectrod.apps.bench.fault_soak.journal import Expected, LogLine, LogReader, problems_of
from spectrod.apps.bench.fault_soak.readback import count_numbers
from spectrod.apps.bench.fault_soak.resources import ResourceSample, growth
from spectrod.apps.bench.fault_soak.run import problems_in
from spectrod.apps.bench.sequence_signal import NumberCheck, numbered_frames

ROWS = {"rows": 9, "gap_samples": 0, "uncounted_samples": 0, "unfinished": 0}
SOUND = {"samples": 9, "twice": 0, "missing": 4, "false": 0, "first": 1, "last": 13}
GOOD = {
    "seconds": 700.0,
    "exit_code": 0,
    "stop_s": 0.4,
    "subscriber": {"uncounted": 0, "errors": []},
    "resources": {"rss_more_bytes": 1 << 20, "descriptors_more": 0.0},
    "card_rate": {"rate_error_ppm": 900.0, "rate_uncertainty_ppm": 850.0},
    "recordings": {"wav": {"rows": ROWS, "sound": SOUND, "lost_rows": 3, "lost_samples": 4}},
}


def test_a_good_run_has_no_problem():
    """A run within all bounds has no problem."""
    assert problems_in(GOOD, [LogLine("warning", "record.failed x: No space left on device")]) == []


def test_memory_of_a_short_run_is_not_judged():
    """A run that is shorter than the warm-up of everything has no verdict on growth."""
    grown = {"resources": {"rss_more_bytes": 90 << 20, "descriptors_more": 9.0}}
    assert problems_in(GOOD | grown | {"seconds": 590.0}, []) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"exit_code": -6}, "exit code -6, not 0"),
        ({"stop_s": 3.2}, "the stop took 3.2 s, more than 3 s"),
        (
            {"subscriber": {"uncounted": 2, "errors": []}},
            "the subscriber missed rows that are in no count, 2 times",
        ),
        ({"subscriber": {"uncounted": 0, "errors": ["odd"]}}, "the subscriber: odd"),
        (
            {"resources": {"rss_more_bytes": 25 << 20, "descriptors_more": 0.0}},
            "memory grew by 25.0 MiB, more than 24 MiB",
        ),
        (
            {"resources": {"rss_more_bytes": 0, "descriptors_more": 13.0}},
            "descriptors grew by 13",
        ),
        (
            {"card_rate": {"rate_error_ppm": -508.0, "rate_uncertainty_ppm": 20.0}},
            "the sound card's rate error is -508.0 +- 20.0 ppm",
        ),
    ],
)
def test_each_bound_that_is_exceeded_is_a_problem(change, text):
    """Each number beyond its bound is one problem, with the number."""
    assert problems_in(GOOD | change, []) == [text]


@pytest.mark.parametrize(
    ("rows", "sound", "text"),
    [
        ({"uncounted_samples": 7}, {}, "7 samples are in no row and no gap"),
        ({"unfinished": 1}, {}, "1 unfinished files"),
        ({}, {"false": 2}, "2 false samples, 0 twice"),
        ({}, {"twice": 5}, "0 false samples, 5 twice"),
        ({}, {"missing": 6}, "6 samples are missing, and 4 are counted"),
    ],
)
def test_each_fault_of_a_recording_is_a_problem(rows, sound, text):
    """A recording that does not add up is one problem, with its name."""
    one = {"rows": ROWS | rows, "sound": SOUND | sound, "lost_rows": 3, "lost_samples": 4}
    assert problems_in(GOOD | {"recordings": {"flac": one}}, []) == [f"recording flac: {text}"]


@pytest.mark.parametrize("text", ["Traceback (most recent call last)", "x; please report this"])
def test_a_bug_in_the_log_is_a_problem(text):
    """A traceback, or a text that asks for a report, is a problem in any line."""
    assert problems_in(GOOD, [LogLine("info", text)]) == [f"the log: {text}"]


def test_lines_of_a_fault_must_be_there_once_and_no_others():
    """A line that is missing, comes twice or belongs to no fault is a problem; info may come."""
    lines = [LogLine("warning", "back after 2.1 s"), LogLine("info", "finished")]
    assert problems_of(lines, (Expected("back after"),)) == []
    assert problems_of(lines, (Expected("back after"), Expected("waiting"))) == [
        "0 lines of 'waiting', not 1 to 1"
    ]
    twice = [*lines, LogLine("warning", "back after 3 s")]
    assert problems_of(twice, (Expected("back"),)) == [
        "2 lines of 'back', not 1 to 1, the first: back after 2.1 s"
    ]
    odd = [*lines, LogLine("error", "x is 3"), LogLine("error", "x is 4")]
    assert problems_of(odd, (Expected("back"),)) == ["2 unexpected: x is 3"]


def test_the_log_is_read_line_by_line(tmp_path):
    """Lines of JSON give level, kind and text; what is no JSON is an error."""
    read, write = os.pipe()
    journal = LogReader(os.fdopen(read, "rb"), tmp_path / "log")
    journal.start()
    os.write(
        write,
        b'{"level": "warning", "event": "a: b", "about": {"event": "record.failed"}}\nnoise\n{}\n',
    )
    os.close(write)
    journal.join()
    assert journal.lines == [
        LogLine("warning", "record.failed a: b"),
        LogLine("error", "noise\n"),
        LogLine("error", "{}\n"),
    ]
    assert (tmp_path / "log").read_bytes().endswith(b"noise\n{}\n")


def test_growth_is_that_after_the_warm_up():
    """Growth in the first quarter counts for nothing, a slope after it for its whole length."""
    rss = [min(k, 25) * 10_000_000 for k in range(100)]
    flat = [ResourceSample(float(k), rss[k], 30) for k in range(100)]
    assert growth(flat) == {"rss_more_bytes": 0.0, "descriptors_more": 0.0}
    leak = [ResourceSample(float(k), 10**8 + k * 1000, 30 + k // 10) for k in range(100)]
    found = growth(leak)
    assert found["rss_more_bytes"] == pytest.approx(74_000.0)
    assert found["descriptors_more"] == 5.0
    assert growth(leak[:7]) == {"rss_more_bytes": 0.0, "descriptors_more": 0.0}


def test_one_peak_is_no_growth():
    """A single peak of memory does not count as growth."""
    samples = [ResourceSample(float(k), 10**8 + (k == 90) * 10**9, 30) for k in range(100)]
    assert growth(samples)["rss_more_bytes"] == 0.0


def sound(folder, name, *spans):
    """Write a sound file of spans of numbers; None stands for three samples of silence."""
    parts = [
        np.zeros((3, 2), np.int16) if one is None else numbered_frames(one[0], one[1] - one[0])
        for one in spans
    ]
    soundfile.write(folder / name, np.concatenate(parts), 4000, subtype="PCM_16")
    return folder / name


def test_missing_samples_are_counted_to_the_sample(tmp_path):
    """Numbers that are in no file are missing; silence, and what a writer tore, are not."""
    files = [sound(tmp_path, "a.wav", (5, 20), None, (23, 30)), sound(tmp_path, "b.wav", (31, 40))]
    found = count_numbers(files, 50, {30, 45})
    assert (found.samples, found.missing, found.twice, found.false) == (31, 3, 0, 0)
    assert (found.first, found.last) == (5, 39)


def test_samples_that_are_twice_or_false_are_found(tmp_path):
    """A number in two files is there twice; one beyond the written ones, or back, is false."""
    files = [sound(tmp_path, "a.wav", (5, 20)), sound(tmp_path, "b.wav", (18, 30))]
    assert count_numbers(files, 50, set()).twice == 2
    assert count_numbers(files, 25, set()).false == 5
    assert count_numbers([sound(tmp_path, "c.wav", (5, 9), (6, 9))], 50, set()).false == 1


@pytest.mark.parametrize("is_torn", [False, True])
def test_the_feeder_counts_what_the_fifo_has(tmp_path, is_torn):
    """Numbers in the FIFO are those that count as written, over writers that end and come back."""
    path, data = tmp_path / "fifo", b""
    with Feeder(path) as feeder:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            while len(data) < 4000:
                data += readable(fd)
            feeder.leave(is_torn=is_torn)
            while select.select([fd], [], [], 5.0)[0] and (more := os.read(fd, 1 << 16)):
                data += more
            n_before, torn = feeder.next_number - 1, set(feeder.torn)
            assert torn == ({n_before} if is_torn else set())
            assert len(data) == 4 * n_before - is_torn
            feeder.go_on()
            again = b""
            while len(again) < 4000:
                again += readable(fd)
        finally:
            os.close(fd)
    whole = data[: len(data) // 4 * 4] + again[: len(again) // 4 * 4]
    check = NumberCheck()
    samples = np.frombuffer(whole, "<i2").reshape(-1, 2).T.astype(np.float32) / 2**15
    check.look(samples, 0)
    assert [one.number_jump for one in check.breaks] == [1] * is_torn


def readable(fd):
    """Wait for data of a pipe that a writer may not have opened yet.

    A pipe without a writer counts as readable; a writer that opens it then makes it empty.
    """
    while True:
        assert select.select([fd], [], [], 5.0)[0]
        with suppress(BlockingIOError):
            return os.read(fd, 1 << 16)
