"""Answers of the command line to unknown arguments, and values with a sign."""

import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.cli import main, whole_parser
from spectrod.cli.help_texts import COMMAND_HELP
from spectrod.config import config
from spectrod.daemon.change_journal import Journal
from spectrod.daemon.control.changed_settings import LiveSettings
from spectrod.lib.errors import ConfigError, NotFoundError
from spectrod.lib.events import EventLog

FILE = ["record", "a.wav", "-o", "a.png"]
SIGNAL = ["record", "signal:pink,-20", "--duration", "1", "-o", "a.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [*FILE, "--fmin", "100"],
            "--fmin: no such option; did you mean --f-min? (see spectrod record --help)",
        ),
        ([*FILE, "--colourmap=jet"], "--colourmap: no such option; did you mean --colormap? ("),
        (
            ["ctl", "record", "start", "--durration", "5"],
            "--durration: no such option; did you mean --duration? (see spectrod ctl record start",
        ),
        ([*FILE, "--xyzzy"], "--xyzzy: no such option (see spectrod record --help)"),
        ([*FILE, "b.wav"], "unrecognized arguments: b.wav; a file to write is given by -o b.w"),
        (["record", "a.wav", "a.png"], "are required: -o/--output; spectrod IN OUT needs none ("),
        (["levels", "a.wav", "a.csv"], "arguments: a.csv; a file to write is given by -o a.csv ("),
        (["run", "b.wav"], "unrecognized arguments: b.wav; a source is given by --source (see"),
        ([*FILE, "--end", "5"], "--end: no such option; did you mean --stop? (see spectrod record"),
        ([*FILE, "--overlap", "50"], "--overlap: no such option; did you mean --hop? (see"),
        (
            [*FILE, "--dpi", "300"],
            "--dpi: no such option; did you mean --width and --height, the pi",
        ),
        (
            ["convert", "a.wav", "a.png", "--size", "85"],
            "--size: no such option; did you mean --width",
        ),
        (
            ["detect", "a.wav", "--pictures", "p", "--size", "85"],
            "--size: no such option (see spec",
        ),
        (["run", "--end", "5"], "--end: no such option (see spectrod run --help)"),
        (["recordd", "a.wav"], "did you mean record?"),
        ([*FILE, "--theme", "drak"], "did you mean dark?"),
        ([*FILE, "--view", "lsta"], "did you mean ltsa?"),
        (
            [*FILE, "--time-axis", "local"],
            "; did you mean --time-zone local?",
        ),
        ([*FILE, "--time-axis", "Asia/Tokyo"], "; did you mean --time-zone Asia/Tokyo?"),
        ([*FILE, "--time-axis", "UTC"], "did you mean utc?"),
        (["record", "a.wav", "-o", "a.flaac"], "did you mean .flac?"),
        (["record", "signal:pnik,-20", "-o", "a.png"], "did you mean pink?"),
        ([*SIGNAL, "--scaling", "densty"], "did you mean density?"),
        ([*SIGNAL, "--window", "hanning"], "did you mean hann?"),
        ([*SIGNAL, "--colormap", "virids"], "did you mean viridis?"),
    ],
)
def test_a_typing_error_gets_a_suggestion(arguments, message, capsys, monkeypatch, tmp_path):
    """An unknown command, option, choice or name is one line with the nearest valid one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECTROD_ENGINE_ENGINE", "numpy")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[analysis]\nhopp = 1", "did you mean hop?"),
        ("[analysis]\nscaling = 'densty'", "did you mean density?"),
        ("[analisys]\nhop = 1", "did you mean analysis?"),
        ("[sources.a]\nuri = 'x'\nsample_rate = 1", "did you mean samplerate?"),
        ("[recordings.a]\nrotate = 1", "did you mean rotate_s?"),
    ],
)
def test_keys_that_were_meant(toml, message, tmp_path):
    """Unknown keys, sections and choices of a file are answered with the nearest valid one."""
    (tmp_path / "c.toml").write_text(toml)
    with pytest.raises(ConfigError, match=re.escape(message)):
        config.check_file(str(tmp_path / "c.toml"))


@pytest.mark.parametrize(
    "value", [["--levels", "-100,-20"], ["--levels=-100,-20"], ["--levels", "-.5,0"]]
)
def test_values_with_a_sign(value):
    """An argument of a minus sign and a digit is a value, also with a space before it."""
    args = whole_parser().parse_args(["record", "a.wav", "-o", "a.png", *value])
    assert args.levels == value[-1].removeprefix("--levels=")


# ---- config check


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("signal:sine,1000", "source: signal:sine,1000: must be signal:sine,FREQ_HZ,LEVEL_DBFS"),
        ("signal:snie,1000,-20", "did you mean sine?"),
        ("signal:sine,30000,-20", "30000 Hz: must lie between 0 and fs/2 = 24000"),
        ("soundcard:colour=red", "soundcard:colour=red: colour: must be one of api,"),
        ("pcm:", "pcm:: must be pcm:PATH"),
        ("http://x", "http://x: must be a sound file, folder of them"),
    ],
)
def test_uris_are_checked_without_being_opened(uri, message, tmp_path, capsys):
    """The plain check finds a URI that can never be opened."""
    (tmp_path / "c.toml").write_text(f"[source]\nuri = '{uri}'\n")
    assert main(["config", "check", str(tmp_path / "c.toml")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("uri", ["none.wav", "pcm:/none", "soundcard:none", "auto", "-"])
def test_the_plain_check_accepts_missing_files_and_devices(uri, tmp_path, capsys):
    """The plain check accepts files and devices that do not exist yet."""
    (tmp_path / "c.toml").write_text(f"[source]\nuri = '{uri}'\n")
    assert main(["config", "check", str(tmp_path / "c.toml")]) == 0
    assert capsys.readouterr().out.endswith(": right\n")


def test_the_plain_check_reports_skipped_checks(tmp_path, capsys):
    """The plain check reports what it skips: bands that depend on a sample rate not yet known."""
    text = "[source]\nuri = 'a.wav'\n[analysis]\nwin_length = 32000\nbands = 'millidecade'\n"
    (tmp_path / "c.toml").write_text(text)
    assert main(["config", "check", str(tmp_path / "c.toml")]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first == (
        "source: not checked, because only the source knows its sample rate or channels: "
        'bands = "millidecade" (set them, or use --deep)'
    )
    assert last.endswith(": right")
    (tmp_path / "c.toml").write_text(text.replace("[analysis]", "samplerate = 48000\n[analysis]"))
    assert main(["config", "check", str(tmp_path / "c.toml")]) == 2
    assert "nfft=32768 must be at least fs=48000" in capsys.readouterr().err


def write_wav(path, fs=8000):
    soundfile.write(path, np.zeros((fs, 2)), fs)


def test_the_deep_check_opens_everything(tmp_path, capsys, monkeypatch):
    """The deep check opens everything that the file names and prints a line for each."""
    monkeypatch.chdir(tmp_path)
    write_wav("a.wav")
    os.mkfifo("fifo")
    Path("c.toml").write_text(
        "[sources.file]\nuri = 'a.wav'\n[sources.pipe]\nuri = 'pcm:fifo'\n"
        "[engine]\nengine = 'numpy'\n[control]\nstate_folder = 'state'\n[recordings.night]\n"
        "[levels.meter]\nquantities = ['LAeq']\n"
        "[recordings.sums]\nproduct = 'meter'\nkeep_days = 9\n"
        "[recordings.other]\nsources = ['pipe']\n"
    )
    assert main(["config", "check", "--deep", "c.toml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # 7.8125 rows a second of 96 + 2 * 4 * 2049 bytes; 86400 rows of 60 + 2 * 20 bytes.
    assert lines == [
        (
            "sources.file: a.wav (WAV, PCM_16): 8000 Hz, channels: 2, products: dbfs"
            "; recording night: needs up to 11 GB a day, until less than min_free_mb=256 is free"
            "; recording sums: needs up to 8.6 MB a day"
        ),
        "sources.pipe: pcm:fifo: a FIFO",
        "engine: numpy",
        "control.state_folder: state (will be made)",
        "recordings.night.folder: state/recordings (will be made)",
        "recordings.sums.folder: state/recordings (will be made)",
        "recordings.other.folder: state/recordings (will be made)",
        "security: no keys",
        "c.toml: right",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.wav", "c.toml", "fifo"]


def test_deep_check_reports_every_problem(tmp_path, capsys, monkeypatch):
    """The deep check prints a line for each problem, hides none, and never prints a traceback."""
    monkeypatch.chdir(tmp_path)
    write_wav("a.wav")
    Path("plain").write_text("")
    Path("c.toml").write_text(
        "[sources.gone]\nuri = 'gone.wav'\n[sources.pipe]\nuri = 'pcm:gone'\n"
        "[sources.slow]\nuri = 'a.wav'\nselect = [2]\n"
        "[sources.names]\nuri = 'a.wav'\nchannel_names = ['one']\n"
        "[sources.high]\nuri = 'a.wav'\n"
        "[levels.high]\nsources = ['high']\nbands = 'third-octave'\nf_min_hz = 8000\n"
        "[engine]\nengine = 'opencl'\ndevice = 'no such device'\n"
        "[recordings.night]\nfolder = 'plain/x'\n"
        "[security]\nserver_key = 'none.key'\nclient_keys = 'none'\n"
    )
    assert main(["config", "check", "--deep", "c.toml"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 8, errors
    for message in (
        "sources.high: levels.high: f_min_hz=8000, f_max_hz=20000: no band of 1/3 octave lies",
        "sources.gone: gone.wav: No such file or directory",
        "sources.pipe: pcm:gone: No such file or directory",
        "sources.slow: source.select=2: ",
        "sources.names: channel_names=",
        "engine: ",
        "recordings.night.folder='plain/x': plain is not a folder",
        "security: none",
    ):
        assert any(message in line for line in errors), message
    assert all(line.startswith("spectrod: c.toml: ") for line in errors)


def test_unknown_keys_of_a_running_daemon():
    """A running daemon suggests the nearest key for an unknown one."""
    settings = LiveSettings(None, config.Config(), config.Config, Journal(EventLog()))
    with pytest.raises(NotFoundError, match=r"analysis.hopp: unknown key; .*did you mean hop\?"):
        settings.get("analysis.hopp")


# ---- help texts


def _parser_of(name):
    subparsers = next(one for one in whole_parser()._actions if one.dest == "command")
    return subparsers.choices[name]


@pytest.mark.parametrize("name", COMMAND_HELP)
def test_help_begins_with_examples_and_has_what_people_use(name, capsys):
    """``--help`` has examples and few options, ``--help-all`` every one; both are of the parser."""
    parser, (examples, options) = _parser_of(name), COMMAND_HELP[name]
    known = {text for action in parser._actions for text in action.option_strings}
    assert {f"--{option}" for option in options.split()} <= known
    for arguments, what in examples:
        assert parser.parse_args(shlex.split(arguments))
        assert f"  spectrod {name} {arguments}".rstrip() + f"\n      {what}\n" in parser.examples
    texts = []
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit, match="0"):
            main([name, flag])
        texts.append(capsys.readouterr().out)
    named = {action.option_strings[-1]: set(action.option_strings) for action in parser._actions
             if action.option_strings}  # fmt: skip
    shown = {"--help", "--help-all", *(f"--{option}" for option in options.split())}
    hidden = [flags for flags in named.values() if not flags & shown]
    assert hidden
    assert all(f"\n\n{parser.examples}\n" in text for text in texts)
    assert all(flag in texts[0] for flag in shown)
    assert not any(re.search(rf"^  (-\w.*, )?{flag}\b(?!-)", texts[0], re.MULTILINE)
                   for flags in hidden for flag in flags)  # fmt: skip
    assert all(any(flag in texts[1] for flag in flags) for flags in named.values())
