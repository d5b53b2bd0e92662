"""``spectrod info``, and what ``spectrod IN OUT`` means."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from spectrod.apps.measurements.sample_facts import SampleFacts
from spectrod.cli import main
from spectrod.dsp.blocks import Block

FS = 8000


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name, *channels, subtype="FLOAT"):
    soundfile.write(name, np.array(channels, np.float32).T, FS, subtype=subtype)


def noise(n, seed=1):
    return 0.1 * np.random.default_rng(seed).standard_normal(n)


def info(capsys, *args):
    """Return the exit code and the facts of ``spectrod info --json``."""
    code = main(["info", *args, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_facts_of_a_recording(capsys):
    """Rate, channels, length and times are those of the file, and where its start comes from."""
    write("20260501_043000.wav", noise(FS * 3 + 1))
    code, facts = info(capsys, "20260501_043000.wav")
    assert (code, facts["fs"], facts["channels"], facts["samples"]) == (0, FS, 1, FS * 3 + 1)
    assert facts["start"] == "2026-05-01T04:30:00.000000000Z"
    assert facts["end"] == "2026-05-01T04:30:03.000125000Z"
    assert "from its name, which names no time zone" in facts["notes"][0]
    assert facts["odd"] == []


def test_what_is_odd_about_samples(capsys):
    """Clipping, silence, an offset, values that are no numbers and equal channels are named."""
    first = noise(3 * FS)
    clipped, silent, odd = (noise(3 * FS, seed) for seed in (2, 3, 4))
    clipped[100:107] = -1.0
    silent[500 : 500 + FS + 1] = 0.0
    odd += 0.05
    odd[7] = np.nan
    write("x.wav", first, clipped, silent, odd, first, np.zeros(3 * FS))
    code, facts = info(capsys, "x.wav", "--samples")
    assert code == 0
    assert [one for one in facts["odd"] if "offset" not in one] == [
        "1: clipped: 7 samples in a row at full scale",
        f"2: digital silence of {(FS + 1) / FS:.3f} s",
        "3: 1 samples are infinite or no numbers",
        "5: all samples are zero",
        "4: the same samples as channel 0",
    ]
    assert [one for one in facts["odd"] if "offset" in one] == [
        f"3: offset of {np.nansum(odd) / len(odd):+.3g} FS"
    ]
    levels = facts["levels"][0]
    assert levels["peak_dbfs"] == pytest.approx(20 * np.log10(np.abs(first).max()), abs=1e-5)
    rms = np.sqrt(2 * np.mean(np.square(first)))
    assert levels["rms_dbfs"] == pytest.approx(20 * np.log10(rms), abs=1e-5)
    assert facts["levels"][5]["peak_dbfs"] is None


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=9), max_size=9))
def test_facts_do_not_depend_on_blocks(blocks):
    """Runs and levels are the same however the samples are cut into blocks."""
    cut, whole = (SampleFacts(4.0, ("0",)) for _ in range(2))
    samples = [value for block in blocks for value in block]
    first = 0
    for block in blocks:
        cut.add(Block(np.array([block], np.float32), first, 0, 0, fs=4.0))
        first += len(block)
    if samples:
        whole.add(Block(np.array([samples], np.float32), 0, 0, 0, fs=4.0))
    assert cut.odd() == whole.odd()
    assert cut.levels() == whole.levels()


def test_gaps_between_files_are_odd(capsys):
    """A folder says when and how much is missing between its files, once."""
    Path("pond").mkdir()
    write("pond/20260501_043000.wav", noise(FS))
    write("pond/20260501_043003.wav", noise(FS, 2))
    code, facts = info(capsys, "pond", "--samples")
    line = "2026-05-01T04:30:01.000000000Z: 2 s without sound after 20260501_043000.wav"
    assert (code, facts["odd"]) == (0, [line])
    assert "schedule" not in facts


@pytest.mark.parametrize("samples", [(), ("--samples",)])
def test_pauses_of_a_schedule_are_not_odd(capsys, samples):
    """A recorder that sleeps has a schedule; what is odd is the file that it lacks."""
    Path("pond").mkdir()
    for k in (0, 1, 2, 3, 4, 6, 7):
        write(f"pond/20260501_0430{6 * k:02d}.wav", noise(FS, k + 1))
    code, facts = info(capsys, "pond", *samples)
    assert (code, facts["schedule"]) == (0, {"period_s": 6.0, "on_s": 1.0, "pauses": 5})
    line = "2026-05-01T04:30:25.000000000Z: 11 s without sound after 20260501_043024.wav"
    assert facts["odd"] == [line]
    main(["info", "pond"])
    assert "schedule    1 s each 6 s, 5 pauses\n" in capsys.readouterr().out


def test_many_gaps_are_named_and_counted(capsys):
    """Of gaps without a schedule the first twenty are named."""
    Path("pond").mkdir()
    starts = np.cumsum(3 + np.random.default_rng(3).integers(0, 30, 26))
    for k, start in enumerate(starts.tolist()):
        write(f"pond/20260501_04{start // 60:02d}{start % 60:02d}.wav", noise(800, k + 1))
    _, facts = info(capsys, "pond")
    assert len(facts["odd"]) == 21
    rest_s = starts[-1] - starts[20] - 0.5
    assert facts["odd"][-1] == f"and 5 more gaps, {rest_s:g} s together"


def test_a_file_that_is_cut_off_ends_with_65(capsys):
    """What is missing at the end is named, and the exit code says it."""
    write("x.wav", noise(FS), subtype="PCM_16")
    Path("cut.wav").write_bytes(Path("x.wav").read_bytes()[:-1000])
    code, facts = info(capsys, "cut.wav")
    assert code == 65
    assert facts["samples"] == FS - 500
    assert "truncated: 16000 bytes announced, 15000 found" in facts["odd"][0]


def test_facts_of_spectra(capsys):
    """A recording of spectra says how it was analysed, and what is in no row."""
    write("x.wav", noise(FS))
    assert main(["record", "x.wav", "-o", "x.spd", "--win-length", "256", "--hop", "128"]) == 0
    capsys.readouterr()
    code, facts = info(capsys, "x.spd")
    assert (code, facts["win_length"], facts["hop"], facts["window"]) == (0, 256, 128, "hann")
    assert facts["start"] is None
    assert facts["odd"] == ["64 samples at the end are in no row"]
    assert main(["info", "x.spd", "--samples"]) == 2
    assert "--samples: x.spd has spectra, no samples" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["info", "signal:white,-20"], "must be stored sound or spectra: this has no end"),
        (["info", "absent.wav"], "absent.wav: No such file or directory"),
        (["absent.wav"], "absent.wav: no file or folder of this name, and no command"),
        (["x.wav", "x.wav"], "x.wav: exists: spectrod IN OUT makes a new file"),
        (["x.wav", "y.foo"], "y.foo: suffix must be one of .png"),
    ],
)
def test_bad_input_is_one_line(capsys, args, text):
    """Each mistake is one line that names the value and the rule."""
    write("x.wav", noise(FS))
    assert main(args) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


def test_in_and_out_without_a_command(capsys):
    """Two names make what the suffix of the second says, in a new folder; one name is described."""
    write("x.wav", noise(FS))
    assert main(["x.wav", "new/folder/x.spd", "--win-length", "256", "--hop", "128"]) == 0
    assert main(["new/folder/x.spd", "p/x.png", "--width", "200"]) == 0
    assert Path("p/x.png").read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert main(["new/folder/x.spd"]) == 0
    assert capsys.readouterr().out.startswith("spectra     of x, computed by spectrod")


def test_text_is_for_persons(capsys):
    """Without --json each fact is a line, and a name with control characters is escaped."""
    write("a\x1b[31m.wav", noise(FS))
    assert main(["info", "a\x1b[31m.wav", "--samples"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "channels    1\n" in out
    assert "odd         nothing\n" in out


@pytest.mark.parametrize(
    ("args", "usage"),
    [
        ([], "usage: spectrod [-h]"),
        (["help"], "usage: spectrod [-h]"),
        (["help", "info"], "usage: spectrod info"),
    ],
)
def test_no_command_is_a_question_for_help(capsys, args, usage):
    """``spectrod`` alone and ``spectrod help COMMAND`` print the help."""
    with pytest.raises(SystemExit, match=r"^0$"):
        main(args)
    assert capsys.readouterr().out.startswith(usage)
