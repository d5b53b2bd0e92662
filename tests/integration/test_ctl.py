"""``spectrod ctl`` and ``spectrod completion`` on a running daemon."""

import errno
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from spectrod.cli import main
from spectrod.client import Control
from spectrod.config import config
from spectrod.daemon.control.controlled import ControlledDaemon
from spectrod.daemon.daemon import build_daemon

FLAGS = {
    "source": {"uri": "signal:sine,1000,-20", "name": "tone"},
    "engine": {"engine": "numpy"},
    "publish": {"endpoints": ["tcp://127.0.0.1:*"]},
    "control": {"requests_per_s": 10_000},
}


@pytest.fixture(autouse=True)
def log_level():
    """Restore the level that ``--verbose`` and the daemon set."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)


def start(**flags):
    def load():
        return config.load(os.devnull, FLAGS | flags)

    daemon = ControlledDaemon(build_daemon(load()), load(), load)
    try:
        daemon.start()
    except BaseException:
        daemon.stop()
        raise
    return daemon


@pytest.fixture
def daemon(machine):
    """Run a daemon with one source."""
    running = start()
    yield running
    running.stop()


@pytest.fixture
def ctl(capsys):
    """Run a command; return its exit code and its output."""

    def run(*arguments):
        code = main(["ctl", *arguments])
        output = capsys.readouterr()
        return code, output.out if code in (0, 69) and output.out else output.err

    return run


@pytest.mark.slow
def test_every_method_has_its_command(daemon, ctl, machine):
    """Every control method has a command with its effect and its output."""
    # A pause would skip the first row.
    while (replayed := ctl("replay", "spec/tone/0/dbfs/", "0", "--limit", "1"))[0]:
        assert replayed[0] == 2  # it has no message yet
    assert ctl("get", "analysis.hop") == (0, "1024\n")
    assert ctl("get", "analysis")[1].splitlines()[2] == "analysis.hop = 1024"
    lines = 'analysis.hop: 1024 -> 512\nlog.level: "info" -> "error"\n'
    assert ctl("set", "analysis.hop=512", "log.level=error") == (0, lines)
    assert ctl("set", "analysis.hop=512") == (0, "nothing has changed\n")
    assert ctl("pause") == ctl("resume", "tone") == ctl("reset", "tone", "dbfs") == (0, "tone\n")
    added = 'sources.b: none -> {"uri":"signal:white,-20","analysis":{"hop":4096}}\n'
    assert ctl("source", "add", "b", "uri=signal:white,-20", "analysis.hop=4096") == (0, added)
    code, text = ctl("status")
    assert code == 0
    assert [line.split()[0] for line in text.splitlines()[6::2]] == ["tone", "b"]
    assert ctl("record", "start", "b", "--name", "x") == (0, "state/x.png\n")
    assert ctl("source", "remove", "b")[0] == 0
    code, text = ctl("events")
    assert code == 0
    assert [line.split()[1] for line in text.splitlines() if "record" not in line] == [
        "control.set", "control.set", "control.pause", "control.resume", "control.reset",
        "source.add", "source.remove",
    ]  # fmt: skip
    replayed = ctl("replay", "spec/tone/0/dbfs/", "0", "--limit", "1")
    assert (replayed[0], replayed[1].split()[0]) == (0, "0")
    assert "largest -20." in replayed[1]
    assert ctl("set", 'products.thirds={"bands":"octave"}')[0] == 0
    while (replayed := ctl("replay", "bands/tone/0/thirds/", "0", "--limit", "1"))[0]:
        assert replayed[0] == 2  # it has no message yet
    assert " in band " in replayed[1]
    assert ctl("set", "products.thirds=null") == (
        0, 'products.thirds: {"sources":[],"bands":"octave"} -> none\n',
    )  # fmt: skip
    assert ctl("metrics")[1].startswith("spectrod_build_info{")
    assert "applied analysis.hop (the file wins over set)" in ctl("reload")[1]


@pytest.mark.slow
def test_recordings_of_the_configuration_are_listed_and_triggered(daemon, ctl):
    """Configured recordings are listed and triggered; none gives code 2, a failed one code 74."""
    assert ctl("record", "list") == (0, "nothing is recorded\n")
    code, text = ctl("record", "trigger")
    assert (code, "no such recording has triggers; there are: none" in text) == (2, True)
    table = '{"triggers": ["control"], "min_free_mb": 1}'
    assert ctl("set", f"recordings.event={table}")[0] == 0
    assert ctl("record", "trigger", "event", "--source", "tone") == (0, "event/tone\n")
    code, text = ctl("record", "list")
    assert (code, text.split()[0]) == (0, "RECORDING")
    assert ctl("set", 'recordings.full={"min_free_mb": 1e9}')[0] == 0
    while (listed := ctl("record", "list", "--json"))[0] == 0:
        pass
    assert listed[0] == 74
    assert main(["ctl", "status"]) == 74
    (trouble,) = daemon.troubles()
    assert trouble.startswith("recording full of tone: full")
    assert ctl("set", "recordings.full=null")[0] == 0
    assert main(["ctl", "status"]) == 0
    assert daemon.troubles() == []


@pytest.mark.slow
def test_a_recording_that_failed_is_in_the_status_and_its_exit_code(daemon, ctl, machine):
    """A folder that cannot be made fails the recording: exit code 74, with the system's reason."""
    (machine / "state").write_text("a file where the folder should be")
    assert ctl("set", 'recordings.all={"min_free_mb": 0}')[0] == 0
    while (code := main(["ctl", "status"])) == 0:
        pass
    assert code == 74
    (trouble,) = daemon.troubles()
    assert trouble.startswith("recording all of tone: failed: ")
    assert "Not a directory" in trouble


def test_json_is_the_reply_as_it_came(daemon, ctl):
    """The option --json prints the reply as one object or list, and one line per event."""
    status = json.loads(ctl("status", "--json")[1])
    assert status["sources"][0]["name"] == "tone"
    assert json.loads(ctl("--json", "get", "log")[1]) == {"level": "info", "style": "auto"}
    assert json.loads(ctl("pause", "--json")[1]) == ["tone"]
    (event,) = [json.loads(line) for line in ctl("events", "--json")[1].splitlines()]
    assert event["kind"] == "control.pause"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["set", "analysis.hop=0"], 2, "hop=0: must be at least 1 sample"),
        (["set", "analysis.hop"], 2, "'analysis.hop': must be KEY=VALUE"),
        (["set", "=1"], 2, "'=1': must be KEY=VALUE"),
        (["set", "a.b=1", "a.b=2"], 2, "a.b: given twice"),
        (["set", "products.x={"], 2, "products.x='{': not valid JSON: Expecting property name"),
        (["set", "engine.engine=opencl"], 2, "engine.engine: needs a restart"),
        (["get", "x"], 2, "x: unknown key; there are [source], [analysis]"),
        (["pause", "x"], 2, "source='x': does not exist; there are: tone"),
        (["record", "stop"], 2, "recording='': does not run; there are: none"),
        (["source", "add", "b", "uri=/etc/passwd"], 2, "uri='/etc/passwd': no file paths from pe"),
        (["source", "remove", "tone"], 2, "source='tone': is the last one"),
        (["replay", "spec/x/0/dbfs/", "0"], 2, "topic='spec/x/0/dbfs/': does not exist"),
        (["status", "--endpoint", "ipc:///nope"], 69, "ipc:///nope: no daemon: No such file"),
        (["status", "--endpoint", "nope"], 2, "endpoint='nope': must be tcp://HOST:PORT or"),
        (["status", "--endpoint", "tcp://127.0.0.1:1", "--timeout", "0.05"], 69, "tcp://127.0"),
        (["status", "--timeout", "0"], 2, "argument --timeout: '0': must be above 0 and below"),
        ([], 2, "the following arguments are required: WHAT"),
        (["explode"], 2, "argument WHAT: invalid choice: 'explode'"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(arguments, code, text, daemon, ctl):
    """An error, also the daemon's own, is one line and an exit code."""
    got_code, error = ctl(*arguments)
    assert got_code == code
    assert error.startswith(f"spectrod: {text}")
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_picture_that_could_not_be_written_is_reported(daemon, ctl, machine, capsys, caplog):
    """A picture that could not be written gives an exit code, an event and an error in the log."""
    ctl("record", "start", "--name", "x")
    while not json.loads(ctl("status", "--json")[1])["recordings"][0]["rows"]:
        pass
    (machine / "state").rmdir()
    assert main(["ctl", "record", "stop"]) == 74
    assert "state/x.png: failed, " in (printed := capsys.readouterr().out)
    assert printed.endswith(" rows: state/x.png: No such file or directory\n")
    assert "record.stop  tone: x.png: failed, " in ctl("events")[1]
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.message.startswith("tone: recording x.png: failed, ")


def test_the_only_daemon_is_found_and_several_are_listed(daemon, ctl, machine):
    """The only daemon is found, also by its publish endpoint, and several are listed."""
    (publish,) = json.loads(ctl("status", "--json")[1])["daemon"]["publish"]
    assert ctl("get", "log.level", "--endpoint", publish) == (0, "info\n")
    assert ctl("get", "log.level", "--endpoint", daemon.endpoints[0]) == (0, "info\n")
    other = start()
    try:
        code, error = ctl("status")
        assert code == 2
        assert error.startswith("spectrod: several daemons run; name one with --endpoint ipc://")
        (first,) = [stats.name for stats in daemon.stats()]
        assert f"--endpoint {daemon.endpoints[0]} (sources {first})" in error
        assert f"--endpoint {other.endpoints[0]} (sources " in error
    finally:
        other.stop()
    assert ctl("status")[0] == 0


@pytest.mark.slow
def test_a_second_daemon_at_the_same_socket_ends_with_75(daemon, ctl):
    """A second daemon at the same socket ends with code 75, and the first still answers."""
    options = ["--source", "signal:white,-20", "--publish", "tcp://127.0.0.1:*", "--show", "none"]
    second = subprocess.run(
        [sys.executable, "-m", "spectrod", "run", "--engine", "numpy", *options],
        env=os.environ | {"SPECTROD_CONTROL_ENDPOINTS": daemon.endpoints[0]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 75
    last = second.stderr.splitlines()[-1]
    assert last.startswith(f"spectrod: endpoint={daemon.endpoints[0]!r}: in use by another process")
    assert ctl("get", "log.level") == (0, "info\n")


def test_without_a_daemon_the_code_is_69(machine, ctl):
    """Without a daemon the exit code is 69, that of an unavailable service."""
    text = "spectrod: no daemon on this machine accepts requests; is one running? "
    text += "A control socket with a path of its own is named with --endpoint ipc://PATH\n"
    assert ctl("status") == (69, text)


def test_a_socket_that_is_not_for_us_is_77(machine, ctl, monkeypatch):
    """The socket of another user's daemon gives exit code 77."""
    (machine / "run").mkdir()
    (machine / "run" / "control-1.ipc").write_text("")
    monkeypatch.setattr(socket.socket, "connect_ex", lambda *_: errno.EACCES)
    code, error = ctl("status")
    assert code == 77
    assert error == (
        "spectrod: ipc://run/control-1.ipc: permission denied; for its user and group only\n"
    )


@pytest.mark.slow
def test_status_has_an_exit_code_for_an_absent_source(machine, ctl):
    """An absent source gives exit code 69 and the reason to wait."""
    daemon = start(source={"uri": "soundcard:no such card"})
    try:
        code, text = ctl("status")
        assert code == 69
        assert "  waits: " in text
    finally:
        daemon.stop()


def test_following_ends_with_ctrl_c(daemon, machine, monkeypatch, capsys):
    """Following prints each event once in order and ends at Ctrl-C with an interrupt's code."""
    hops = iter((500, 501))

    def change_or_interrupt(_):
        hop = next(hops, None)
        if hop is None:
            raise KeyboardInterrupt
        with Control(daemon.endpoints[0]) as control:
            control.call("set", changes={"analysis.hop": hop})

    monkeypatch.setattr("spectrod.apps.ctl.command.time.sleep", change_or_interrupt)
    assert main(["ctl", "events", "--follow"]) == 130
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("  control.set  ")[2].partition("  (")[0] for line in lines] == [
        "analysis.hop: 1024 -> 500",
        "analysis.hop: 500 -> 501",
    ]


@pytest.mark.parametrize(
    ("arguments", "timeout_s"),
    [
        (["status"], 10),
        (["get", "log"], 10),
        (["set", "log.level=info"], 60),
        (["metrics"], 10),
        (["record", "stop"], 60),
        (["learn", "--list"], 60),
        (["set", "log.level=info", "--timeout", "3"], 3),
        (["--timeout", "3", "status"], 3),
    ],
)
def test_changes_are_waited_for_longer(arguments, timeout_s, daemon, ctl, monkeypatch):
    """Commands that may compile kernels or draw have a longer timeout."""
    waited = []

    def made(*args, **options):
        waited.append(options["timeout_s"])
        return Control(*args, **options)

    monkeypatch.setattr("spectrod.apps.ctl.command.Control", made)
    ctl(*arguments)
    assert waited == [timeout_s]


def _event(number, t_utc_ns=0):
    return {"number": number, "t_utc_ns": t_utc_ns, "kind": "a.b", "text": "", "source": ""}


@pytest.mark.parametrize(
    ("replies", "numbers", "reported"),
    [
        (([0, 1], [1], [1, 2]), [0, 1, 2], ""),
        (([0, 1], [2]), [0, 1, 2], ""),
        (([0, 1], [5]), [0, 1, 5], "3 events in between are gone\n"),
        (([0, 1], [], [0]), [0, 1, 0], "the daemon was restarted\n"),
        (([0, 1], [-1], [0, -1, 2]), [0, 1, 0, 1, 2], "the daemon was restarted\n"),
    ],
)
def test_following_misses_nothing_unsaid(replies, numbers, reported, monkeypatch, capsys):
    """Following reports events that the daemon dropped, or that a restart skipped."""
    # A negative number stands for an event of that number of a later start.
    left = [[_event(abs(n), int(n < 0)) for n in reply] for reply in replies]

    class Scripted:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def call(self, _method, **_params):
            if not left:
                raise KeyboardInterrupt
            return left.pop(0)

    monkeypatch.setattr("spectrod.apps.ctl.command.Control", Scripted)
    monkeypatch.setattr("spectrod.apps.ctl.command.find", lambda *_: "")
    monkeypatch.setattr("spectrod.apps.ctl.command.time.sleep", lambda _: None)
    assert main(["ctl", "events", "--follow", "--json"]) == 130
    output = capsys.readouterr()
    assert [json.loads(line)["number"] for line in output.out.splitlines()] == numbers
    assert output.err == f"{reported}spectrod: interrupted\n"


@pytest.mark.parametrize(("what", "is_reported"), [("reload", True), ("status", False)])
def test_a_slow_change_reports_the_reason(monkeypatch, capsys, what, is_reported):
    """A slow change says on standard error that kernels may compile; reads are fast."""
    waiting = (
        "waiting for the daemon: new kernels take seconds to compile, once for each analysis\n"
    )
    printed = []

    class Slow:
        def __init__(self, *_args, **_keywords):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def call(self, *_args, **_keywords):
            deadline_s = time.monotonic() + 30.0
            while is_reported and waiting not in "".join(printed) and time.monotonic() < deadline_s:
                printed.append(capsys.readouterr().err)
            return ["done"] if what == "reload" else {"sources": []}

    timer = threading.Timer
    monkeypatch.setattr(threading, "Timer", lambda _s, *what: timer(0.0, *what))
    monkeypatch.setattr("spectrod.apps.ctl.command.Control", Slow)
    monkeypatch.setattr("spectrod.apps.ctl.command.find", lambda *_: "")
    monkeypatch.setattr("spectrod.apps.ctl.command.ctl_text.status_text", lambda _: "fine")
    assert main(["ctl", what]) == 0
    printed.append(capsys.readouterr().err)
    assert "".join(printed) == (waiting if is_reported else "")


@pytest.mark.parametrize(
    ("what", "reply", "text"),
    [
        (
            "events",
            [_event(0) | {"who": "", "t_utc_ns": 10**30}],
            "t_utc_ns=1000000000000000000000000000000",
        ),
        ("events", [{"number": 0}], "reply to events: KeyError"),
        ("events", 7, "reply to events: TypeError"),
        ("status", {"daemon": {}, "sources": []}, "reply to status: KeyError"),
        ("metrics", [None], "reply to metrics: TypeError"),
    ],
)
def test_a_reply_of_another_shape_is_one_line_and_no_bug(what, reply, text, monkeypatch, capsys):
    """A malformed reply of a foreign or hostile daemon is an error of one line."""

    class Hostile:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def call(self, _method, **_params):
            return reply

    monkeypatch.setattr("spectrod.apps.ctl.command.Control", Hostile)
    monkeypatch.setattr("spectrod.apps.ctl.command.find", lambda *_: "tcp://127.0.0.1:1")
    assert main(["ctl", what]) == 2
    errors = capsys.readouterr().err
    assert text in errors
    assert "bug" not in errors
    assert errors.count("\n") == 1


@pytest.mark.slow
def test_its_help_needs_no_device_library():
    """The help starts fast and loads no device library."""
    program = "import sys; from spectrod.cli import main\ntry: main(['ctl','--help'])\nexcept SystemExit: pass\n"  # noqa: E501
    program += "print([m for m in ('pyopencl', 'sounddevice', 'soundfile') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


# ---- completion


def completed(words, tmp_path):
    """Complete a line with a real bash, and return its suggestions."""
    script = tmp_path / "spectrod.bash"
    script.write_text(
        subprocess.run(
            [sys.executable, "-m", "spectrod", "completion", "bash"],
            capture_output=True, text=True, check=True,
        ).stdout
    )  # fmt: skip
    line = f"""
        source {script}
        function_=$(complete -p spectrod | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        COMP_WORDS=({" ".join(words)}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        COMP_LINE="{" ".join(words)}"; COMP_POINT=${{#COMP_LINE}}
        $function_; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["spectrod", "ct"], ["ctl"]),
        (["spectrod", "ctl", "re"], ["reload", "resume", "reset", "replay", "record"]),
        (["spectrod", "ctl", "record", "sta"], ["start"]),
        (["spectrod", "ctl", "status", "--js"], ["--json"]),
        (["spectrod", "run", "--pub"], ["--publish"]),
        (["spectrod", "completion", "f"], ["fish"]),
    ],
)
def test_bash_completes_commands_and_options(words, offered, tmp_path):
    """With the script, bash completes commands and options."""
    assert sorted(completed(words, tmp_path)) == sorted(offered)


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_their_scripts(shell, capsys):
    """Other shells get a script that completes the methods of ctl."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "reload" in script
    assert "spectrod" in script
