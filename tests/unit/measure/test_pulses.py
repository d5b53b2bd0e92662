"""Patterns of triggers: pulses and pauses of given lengths are events, other sounds are none."""

import os
import re

import numpy as np
import pytest

from spectrod import Stft
from spectrod.config import config
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError
from spectrod.measure.triggers.trigger import Trigger
from spectrod.measure.triggers.trigger_config import TriggerConfig

FS, WINDOW, HOP = 8000, 512, 128
SPAN_S = WINDOW / FS
"""Length of the windows: times are known to one."""
ALARM = {"pulse_s": (0.3, 0.7), "pause_s": (0.3, 0.7)}
BAND = {"f_min_hz": 2900.0, "f_max_hz": 3300.0, "threshold": -40.0, "unit": "dBFS"}


def sound(seconds, pulses, n_extra=0, level_dbfs=-20.0):
    """White noise of -60 dBFS, with a tone of 3.1 kHz in each (begin, end) [s]."""
    t = np.arange(round(seconds * FS) + n_extra) / FS
    x = 7e-4 * np.random.default_rng(3).standard_normal(len(t))
    tone = 10 ** (level_dbfs / 20) * np.sin(2 * np.pi * 3100 * t)
    for begin_s, end_s in pulses:
        x += np.where((t >= begin_s) & (t < end_s), tone, 0.0)
    return x


def train(begin_s, n, on_s=0.5, off_s=0.5):
    """Return the begin and the end of n pulses [s]."""
    return [(at, at + on_s) for at in begin_s + (on_s + off_s) * np.arange(n)]


def rows_of(samples, **parameters):
    options = {"win_length": WINDOW, "hop": HOP, "scaling": "dbfs", **parameters}
    with Stft(FS, engine="numpy", **options) as stft:
        return [*stft.push(samples.astype(np.float32)[np.newaxis]), *stft.finish()]


def events_of(batches, **keys):
    trigger = Trigger(TriggerConfig("t", **{**BAND, **ALARM, **keys}), batches[0].spec, ("0",))
    found = [event for batch in batches for event in trigger.push(batch)]
    return found + trigger.end("stopped")


def ends_of(samples, **keys):
    """Return (begin, end, pulses) of each event [s]."""
    batches = rows_of(samples)
    start_ns = int(batches[0].t_utc_ns[0])
    return [
        ((one.begin_utc_ns - start_ns) / 1e9, (one.end_utc_ns - start_ns) / 1e9, one.pulses)
        for one in events_of(batches, **keys)
        if one.state == "ended"
    ]


@pytest.mark.parametrize("n_extra", [0, 77])
@pytest.mark.parametrize("n", [3, 4, 9])
def test_a_series_is_one_event_from_its_first_pulse_to_its_last(n, n_extra):
    """The event has the begin of the first pulse, the end of the last, and their number."""
    ((begin_s, end_s, pulses),) = ends_of(sound(n + 3, train(1.0, n), n_extra))
    assert begin_s == pytest.approx(1.0, abs=SPAN_S)
    assert end_s == pytest.approx(1.0 + n - 0.5, abs=SPAN_S)
    assert pulses == n


def test_each_group_of_an_alarm_is_an_event():
    """Three pulses, 1.5 s without, and three pulses again are two events."""
    found = ends_of(sound(10, [*train(1.0, 3), *train(5.0, 3)]))
    assert [pulses for *_, pulses in found] == [3, 3]
    assert [begin_s for begin_s, *_ in found] == pytest.approx([1.0, 5.0], abs=SPAN_S)


OTHERS = {
    "steady": [(1.0, 9.0)],
    "two pulses": train(1.0, 2),
    "long pulses": train(1.0, 4, 1.0, 0.5),
    "short pulses": train(1.0, 8, 0.15, 0.5),
    "long pauses": train(1.0, 4, 0.5, 1.2),
    "short pauses": train(1.0, 8, 0.5, 0.15),
    "a long pulse among them": [*train(1.0, 2), (3.0, 4.2), *train(4.7, 2)],
    "a long pause among them": [*train(1.0, 2), *train(4.0, 2)],
    "the first lasts at the start": train(0.0, 3),
    "the last lasts at the end": train(7.2, 3),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_sounds_are_no_event(name):
    """What has other times, or too few pulses with both ends, is none."""
    assert ends_of(sound(9.5, OTHERS[name])) == []


def test_pulses_after_one_that_does_not_match_count():
    """A pulse that is too long ends a series; the ones after it may be the next."""
    ((begin_s, _, pulses),) = ends_of(sound(12, [(1.0, 3.0), *train(3.5, 3)]))
    assert begin_s == pytest.approx(3.5, abs=SPAN_S)
    assert pulses == 3


def test_one_pulse_of_a_length_may_be_the_pattern():
    """With one pulse as the least number, each run of pulses is an event, a steady tone none."""
    calls = [*train(1.0, 1), (3.0, 6.0), *train(8.0, 2)]
    assert [pulses for *_, pulses in ends_of(sound(12, calls), pulses_min=1)] == [1, 2]


def test_a_gap_ends_the_series():
    """Pulses before a gap and after it are not joined; what lasts at the gap is no pulse."""
    (whole,) = rows_of(sound(12, train(1.0, 8)))
    at = round(5.2 * FS) // HOP  # in the fifth pulse
    parts = [whole.between(0, at), whole.between(at, whole.n_frames).after_gap(1)]
    found = events_of(parts)
    assert [(one.state, one.reason, one.pulses) for one in found] == [
        *(("begun", "", 3), ("ended", "gap", 4)),
        *(("begun", "", 3), ("ended", "released", 3)),
    ]


def test_the_begin_is_reported_with_the_least_pulse_and_the_number_is_in_the_text():
    """An event begins when its third pulse has ended, and then has the begin of the first."""
    batches = rows_of(sound(8, train(1.0, 5)))
    rows = [one.between(k, k + 1) for one in batches for k in range(one.n_frames)]
    trigger = Trigger(TriggerConfig("t", **BAND, **ALARM), batches[0].spec, ("0",))
    found = [(k * HOP / FS, event) for k, row in enumerate(rows) for event in trigger.push(row)]
    (begun_s, begun), (ended_s, ended) = found
    assert begun_s == pytest.approx(3.5, abs=SPAN_S)
    assert ended_s == pytest.approx(5.5 + 0.7, abs=SPAN_S)
    assert begun.begin_utc_ns == ended.begin_utc_ns
    assert ", 3 pulses" in begun.text
    assert ended.duration_s == pytest.approx(4.5, abs=2 * SPAN_S)
    assert ended.text.endswith(f", 5 pulses; released after {ended.duration_s:.3g} s")


def test_the_loudest_pulse_gives_the_numbers():
    """Level and time are those of the value furthest over the threshold in all pulses."""
    x = sound(8, train(1.0, 3)) + sound(8, [(2.1, 2.4)], level_dbfs=-10.0)
    batches = rows_of(x)
    _, ended = events_of(batches)
    # Both tones have one phase: their amplitudes add.
    assert ended.level == pytest.approx(20 * np.log10(10**-1 + 10**-0.5), abs=0.1)
    assert (ended.peak_utc_ns - int(batches[0].t_utc_ns[0])) / 1e9 == pytest.approx(2.2, abs=0.2)


@pytest.mark.parametrize("decay_s", [0.3, 0.8])
def test_an_echo_does_not_fill_the_pauses(decay_s):
    """In a room where 60 dB need 0.3 or 0.8 s, pulses end 10 dB below their highest level."""
    t = np.arange(8 * FS) / FS
    x = sound(8, [])
    for begin_s, end_s in train(1.0, 3):
        # Rises at once, and falls by 60 dB in the time.
        envelope = np.where(t < end_s, 1.0, 10 ** (-3.0 * (t - end_s) / decay_s))
        x += 0.3 * np.where(t >= begin_s, envelope, 0.0) * np.sin(2 * np.pi * 3100 * t)
    # The threshold is 50 dB below the level: a pause of 0.5 s would be 0.25 s or none.
    quiet = {"threshold": -60.0}
    ((begin_s, _, pulses),) = ends_of(x, **quiet)
    assert begin_s == pytest.approx(1.0, abs=SPAN_S)
    assert pulses == 3
    assert ends_of(x, **quiet, fall_db=200.0) == []


def test_an_unknown_floor_hides_the_begin_of_a_pulse():
    """What sounds when the floor becomes known has no begin that was seen."""
    keys = {"f_min_hz": 2900.0, "f_max_hz": 3300.0, "over_floor_db": 10.0, "floor_s": 8.0}
    batches = rows_of(sound(12, train(0.1, 6, 0.6, 0.5)))  # known after 2 s, in the second pulse
    trigger = Trigger(TriggerConfig("t", **keys, **ALARM), batches[0].spec, ("0",))
    found = [event for batch in batches for event in trigger.push(batch)]
    assert [event.pulses for event in found] == [3, 4]


@pytest.mark.parametrize(
    ("keys", "rule"),
    [
        ({"pause_s": (1.0, 2.0)}, "pulse_s: must be given with pause_s"),
        ({"pulse_s": (1.0, 2.0)}, "pause_s: must be given with pulse_s"),
        ({"pulses_min": 4}, "pulses_min=4: needs pulse_s and pause_s"),
        (ALARM | {"pulses_min": 0}, "pulses_min=0: must be 1 to 1000"),
        (ALARM | {"pulses_min": 1001}, "pulses_min=1001: must be 1 to 1000"),
        (ALARM | {"for_s": 1.0}, "for_s=1: must be 0 with pulse_s"),
        ({"fall_db": 6.0}, "fall_db=6: needs pulse_s and pause_s"),
        (ALARM | {"fall_db": 1.0}, "fall_db=1: must be 3 to 200: noise alone varies by less"),
        (ALARM | {"pulse_s": (0.7, 0.3)}, "pulse_s=[0.7, 0.3]: must be two times from 0 to 3600 s"),
        (ALARM | {"pulse_s": (0.3, 0.3)}, "pulse_s=[0.3, 0.3]: must be two times from 0"),
        (ALARM | {"pause_s": (-0.1, 0.3)}, "pause_s=[-0.1, 0.3]: must be two times from 0"),
        (ALARM | {"pause_s": (0.0, float("inf"))}, "pause_s=[0, inf]: must be two times from 0"),
        (ALARM | {"pulse_s": (float("nan"), 1.0)}, "pulse_s=[nan, 1]: must be two times from 0"),
        (
            ALARM | {"pause_s": (0.0, 0.015)},
            "pause_s=[0, 0.015]: must reach to 0.016 s or more, the time between rows",
        ),
    ],
)
def test_a_broken_rule_is_named_with_its_value(keys, rule):
    """Each broken rule is one error with the key, the value and the rule."""
    spec = SpectrumSpec(FS, win_length=WINDOW, hop=HOP, scaling="dbfs")
    with pytest.raises(ConfigError, match=re.escape(rule)):
        Trigger(TriggerConfig("t", **BAND, **keys), spec, ("0",))


def test_a_configuration_has_patterns(tmp_path):
    """A pattern is read, written, changed as text, and checked against the rows."""
    file = tmp_path / "spectrod.toml"
    base = '[source]\nuri = "signal:sine,1000,-20"\nname = "tone"\nsamplerate = 48000\n'
    trigger = "[triggers.smoke]\nover_floor_db = 20\n"
    pattern = "pulse_s = [0.3, 0.7]\npause_s = [0.25, 0.7]\npulses_min = 4\nfall_db = 6\n"
    file.write_text(base + trigger + pattern)
    found = config.load(os.fspath(file))
    smoke = found.triggers[0]
    assert (smoke.pulse_s, smoke.pause_s, smoke.pulses_min) == ((0.3, 0.7), (0.25, 0.7), 4)
    assert smoke.fall_db == 6.0
    # The hold-off, in which a series may begin, four pulses and the three pauses between them.
    assert smoke.known_after_s == pytest.approx(1.0 + 4 * 0.7 + 3 * 0.7)
    file.write_text(config.to_toml(found))
    assert config.load(os.fspath(file)) == found
    changed = config.with_changes(found, {"triggers.smoke.pulse_s": "250ms..0.8"}, "set")
    assert changed.triggers[0].pulse_s == (0.25, 0.8)
    for text, rule in (
        ("[0.3]", "triggers.smoke.pulse_s=[0.3]: must be an array of 2 numbers"),
        ("[0.0, 0.01]", "triggers.smoke: pulse_s=[0, 0.01]: must reach to 0.0213 s or more"),
    ):
        file.write_text(base + trigger + pattern.replace("[0.3, 0.7]", text))
        with pytest.raises(ConfigError, match=re.escape(rule)):
            config.check_file(os.fspath(file))
