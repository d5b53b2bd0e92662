"""Text from file names, paths, devices and peers ends no daemon and reaches terminals escaped."""

import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import xml.dom.minidom
from pathlib import Path

import msgspec
import numpy as np
import pytest
import soundfile
import zmq
from PIL import Image

from spectrod.cli import main
from spectrod.client import subscribe
from spectrod.daemon.publisher.publisher import Publisher
from spectrod.lib.errors import UnavailableError
from spectrod.lib.events import EventLog
from spectrod.lib.stats import CaptureStats, Stats
from spectrod.wire.headers import EventHeader, HeartbeatHeader

LIMIT_S = 30.0
NAME = b"caf\xe9\n2026-01-01T00:00:00.000Z ERROR   forged\x1b]0;title\x07\xe2\x80\xae.wav"
SHOWN = r"caf\xe9\n2026-01-01T00:00:00.000Z ERROR   forged\x1b]0;title\x07\u202e.wav"
EVIL = "\x1b[31mRED\x1b]0;pwned\x07\nspectrod: all is well\x9b\u202e"
HARMLESS = r"\x1b[31mRED\x1b]0;pwned\x07\nspectrod: all is well\u009b\u202e"
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) .*")

TOML = """
source = {{ uri = "signal:sine,1000,-20", name = "tone", samplerate = 48000 }}
engine = {{ engine = "numpy" }}
publish = {{ endpoints = ["tcp://127.0.0.1:*"] }}
log = {{ style = "human" }}
{more}
"""
RECORDING = "[recordings.r]\nkeep_days = 1\n"


class Daemon:
    """``spectrod run`` in a separate process.

    Attributes
    ----------
    log : list of str
        The lines of its log so far.
    """

    def __init__(self, folder, more="", arguments=(), **environ):
        (folder / "spectrod.toml").write_text(TOML.format(more=more))
        command = [sys.executable, "-m", "spectrod", "run", "--config", folder / "spectrod.toml"]
        # With STATE_DIRECTORY and RUNTIME_DIRECTORY set, XDG_STATE_HOME would not count.
        inherited = {k: v for k, v in os.environ.items() if k != "STATE_DIRECTORY"}
        self.process = subprocess.Popen(
            [*command, "--show", "none", *arguments],
            stderr=subprocess.PIPE,
            env=inherited | environ,
            cwd=folder,
        )
        self.log = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.endpoint = self.wait_for("publishing at ")
        self.control = self.wait_for("control at ")

    def _read(self):
        # Split by line feeds alone: splitlines() would hide other characters that start a line.
        for line in self.process.stderr:
            with self._changed:
                self.log.append(line.decode()[:-1])
                self._changed.notify()
        with self._changed:
            self.log.append(f"(exit code {self.process.wait()})")
            self._changed.notify()

    def wait_for(self, text):
        """Wait until a line of the log has a text; return the text after it."""
        with self._changed:
            assert self._changed.wait_for(lambda: text in "\n".join(self.log), LIMIT_S), self.log
            return next(line for line in self.log if text in line).partition(text)[2]

    def ctl(self, *arguments):
        """Run ``spectrod ctl`` on this daemon; return its output, which is UTF-8."""
        command = [sys.executable, "-m", "spectrod", "ctl", "--endpoint", self.control, *arguments]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
        assert done.returncode in (0, 69), done.stderr
        return done.stdout.decode()

    def status(self):
        """Request the status."""
        return json.loads(self.ctl("status", "--json"))

    def wait_until_recording(self):
        """Wait until rows are recorded; return all events so far."""
        deadline_s = time.monotonic() + LIMIT_S
        while not self.status()["recorders"][0].get("rows"):
            assert time.monotonic() < deadline_s, self.log
        return [json.loads(line) for line in self.ctl("events", "--json").splitlines()]

    def assert_alive(self):
        """Check that the daemon is alive, that its log lines are its own, and that it stops."""
        with zmq.Context() as context, context.socket(zmq.SUB) as sub:
            sub.setsockopt(zmq.LINGER, 0)
            sub.setsockopt(zmq.RCVTIMEO, int(LIMIT_S * 1e3))
            sub.subscribe("hb/")
            sub.connect(self.endpoint)
            for _ in range(2):
                msgspec.json.decode(sub.recv_multipart()[1], type=HeartbeatHeader)
        self.close()
        assert self.log.pop() == "(exit code 0)"
        assert [line for line in self.log if not LOG_LINE.fullmatch(line)] == []
        assert [line for line in self.log if not line.isprintable()] == []

    def close(self):
        """Stop the daemon if it is still running."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        self._reader.join(LIMIT_S)
        self.process.stderr.close()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run daemons, and stop them after the test."""
    running = []
    with tempfile.TemporaryDirectory(prefix="spectrod-") as runtime:  # a socket's path is short
        monkeypatch.setenv("RUNTIME_DIRECTORY", runtime)

        def start(*arguments, **options):
            running.append(Daemon(tmp_path, *arguments, **options))
            return running[-1]

        yield start
        for daemon in running:
            daemon.close()


# ---- file names and paths


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [b".part", b""])
def test_a_file_name_of_any_bytes_in_a_recording_folder(run, tmp_path, suffix):
    """A file name of any bytes in a recording's folder is logged in one line and stops nothing."""
    folder = tmp_path / "state/spectrod/recordings/r/tone"
    folder.mkdir(parents=True)
    path = os.fsdecode(os.fsencode(folder) + b"/" + NAME + suffix)
    Path(path).write_bytes(b"not a sound file")
    os.utime(path, (0, 0))  # old enough to have expired
    daemon = run(RECORDING, XDG_STATE_HOME=str(tmp_path / "state"))
    events = daemon.wait_until_recording()
    if suffix:
        (reported,) = [event["text"] for event in events if event["kind"] == "record.unrecovered"]
        assert SHOWN in reported
        assert daemon.wait_for("recording r: ").startswith(SHOWN)
        text = daemon.ctl("events")
        assert SHOWN in text
        assert text.replace("\n", "").isprintable()
    daemon.assert_alive()


@pytest.mark.slow
def test_a_state_folder_of_any_bytes(run, tmp_path):
    """Events, status and log show the state folder with its bytes escaped."""
    state = os.fsencode(tmp_path) + b"/st\xe9\x1b\xc2\x9bte"
    daemon = run(RECORDING, XDG_STATE_HOME=state)
    daemon.wait_until_recording()
    shown = r"/st\xe9\x1b\u009bte/spectrod/recordings/r/tone"
    assert shown in daemon.ctl("record", "list")
    assert shown in daemon.ctl("events")
    assert daemon.status()["recorders"][0]["folder"].endswith(shown)
    daemon.assert_alive()
    assert list(Path(os.fsdecode(state)).glob("spectrod/recordings/r/tone/*.spd"))


@pytest.mark.slow
def test_a_fifo_of_any_bytes_is_waited_for_and_read(run, tmp_path):
    """A FIFO with a name of any bytes is opened by that name and shown escaped in the status."""
    path = os.fsencode(tmp_path) + b"/f\xff\nREADY=1.fifo"
    os.mkfifo(path)
    shown = r"/f\xff\nREADY=1.fifo"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{os.environ['RUNTIME_DIRECTORY']}/notify")
        manager.settimeout(LIMIT_S)
        source = [b"--source", b"pcm:" + path, b"--rate", b"8000", b"--channels", b"1"]
        daemon = run(arguments=[*source, b"--name", b"f"], NOTIFY_SOCKET=manager.getsockname())
        reported = b""
        while shown.encode() not in reported:
            reported = manager.recv(65536)
        assert reported.startswith(b"STATUS=waiting: ")
        assert b"\n" not in reported
        assert shown in daemon.ctl("status")
        capture = daemon.status()["sources"][0]["capture"]
        assert capture["waiting_for"].endswith(shown)
        with Path(os.fsdecode(path)).open("wb") as writer:
            writer.write(np.zeros(8000, "<i2").tobytes())
        while reported != b"READY=1":
            reported = manager.recv(65536)
        daemon.assert_alive()


def test_a_message_that_cannot_be_encoded_is_dropped_and_counted(caplog):
    """A message with text that cannot be encoded is dropped and counted; publishing goes on."""
    events = EventLog(lambda: publisher.send_events())  # noqa: PLW0108 - made below
    publisher = Publisher(["tcp://127.0.0.1:*"], events=events)
    stats = Stats("running", "x", "numpy", 8e3, 1)
    feed = publisher.add_source("mic", lambda: stats)
    publisher.start()
    try:
        with zmq.Context() as context, context.socket(zmq.SUB) as sub:
            sub.setsockopt(zmq.LINGER, 0)
            sub.setsockopt(zmq.RCVTIMEO, int(LIMIT_S * 1e3))
            sub.subscribe("")
            sub.connect(publisher.endpoints[0])
            sub.recv_multipart()
            object.__setattr__(stats, "checks", ("\udce9",))
            feed.changed()
            event = events.add("test", "first")
            object.__setattr__(event, "text", "\udce9")
            publisher.send_events()
            events.add("test", "second")
            texts = []
            while "second" not in texts:
                name, header = sub.recv_multipart()[:2]
                if name.startswith(b"event/"):
                    texts.append(msgspec.json.decode(header, type=EventHeader).text)
            assert publisher.unsendable >= 1
            assert publisher.failure is None
    finally:
        publisher.stop()
    assert "cannot be encoded: 'utf-8' codec can't encode character" in caplog.text
    assert len([record for record in caplog.records if "dropped" in record.message]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg", "wav"])
def test_a_sound_files_name_is_escaped_in_outputs(tmp_path, suffix):
    """Titles and notes contain a sound file's name escaped, in files that other programs read."""
    folder = os.fsencode(tmp_path)
    path = os.fsdecode(folder + b"/" + NAME)
    out = os.fsdecode(folder + b"/o\xe9\x1b." + suffix.encode())
    with soundfile.SoundFile(os.fsencode(path), "w", 8000, 1, format="WAV") as file:
        file.write(np.random.default_rng(1).normal(0.0, 0.1, 8001))
    assert main(["record", path, "-o", out, "--engine", "numpy"]) == 0
    if suffix == "png":
        with Image.open(out) as picture:
            assert picture.text["Title"] == SHOWN
    elif suffix == "svg":
        with Path(out).open("rb") as file:
            page = xml.dom.minidom.parse(file)  # noqa: S318 - spectrod has just written it
        assert page.getElementsByTagName("title")[0].firstChild.data == SHOWN
    else:
        assert rb"Original Filename: o\xe9\x1b.wav" b"\n" in Path(out).read_bytes()


# ---- peers


STATUS = {
    "daemon": {
        "version": EVIL,
        "pid": 1,
        "uptime_s": 1.0,
        "publish": [EVIL],
        "engines": [EVIL],
        "subscribers": 0,
        "security": {EVIL: 1},
        "set": [EVIL],
    },
    "sources": [
        msgspec.to_builtins(Stats("running", "", "", 8e3, 1))
        | {"name": EVIL, "state": EVIL, "source": EVIL, "engine": EVIL, "engine_failures": 1}
        | {"products": [EVIL], "checks": [EVIL]}
        | {"capture": msgspec.to_builtins(CaptureStats()) | {"waiting_for": EVIL}}
    ],
    "recordings": [
        {"name": EVIL, "source": EVIL, "product": EVIL, "state": EVIL, "frames": 1, "error": EVIL}
    ],
    "recorders": [
        dict.fromkeys(("name", "source", "state", "folder", "error"), EVIL)
        | {"files": [EVIL]}
        | dict.fromkeys(("rows", "samples", "lost_rows", "lost_samples", "written_bytes"), 1)
        | {"free_bytes": None}
    ],
}
EVENT = {"number": 0, "t_utc_ns": 0, "kind": EVIL, "text": EVIL, "source": EVIL, "who": EVIL}
PICTURE = {"path": EVIL, "state": EVIL, "frames": 1, "error": EVIL}
REPLIES = {
    ("status",): (STATUS, 20),
    ("metrics",): ([{"name": EVIL, "labels": {EVIL: EVIL}, "value": 1.0, "unit": EVIL}], 1),
    ("get",): ({EVIL: {EVIL: [EVIL]}}, 1),
    ("get", "source.uri"): (EVIL, 1),
    ("events",): ([EVENT, EVENT | {"number": 1}], 2),
    ("set", "log.level=info"): ([EVIL, EVIL], 2),
    ("reload",): ([EVIL], 1),
    ("pause",): ([EVIL], 1),
    ("source", "remove", "x"): ([EVIL], 1),
    ("record", "list"): (STATUS, 6),
    ("record", "start"): (PICTURE, 1),
    ("record", "stop"): ([PICTURE], 1),
    ("record", "trigger"): ([EVIL], 1),
}


@pytest.fixture
def hostile():
    """Answer control requests with any reply; return the endpoint and a setter of the reply."""
    with tempfile.TemporaryDirectory(prefix="spectrod-") as folder, zmq.Context() as context:
        socket_ = context.socket(zmq.ROUTER)
        socket_.setsockopt(zmq.LINGER, 0)
        endpoint = f"ipc://{folder}/h.ipc"
        socket_.bind(endpoint)
        stop = context.socket(zmq.PAIR)
        stop.bind("inproc://stop")
        reply = {}

        def serve():
            poller = zmq.Poller()
            poller.register(socket_, zmq.POLLIN)
            end = context.socket(zmq.PAIR)
            end.connect("inproc://stop")
            poller.register(end, zmq.POLLIN)
            while end not in dict(poller.poll()):
                peer, request = socket_.recv_multipart()
                number = msgspec.json.decode(request)["id"]
                answer = {"v": 1, "id": number, "ok": "error" not in reply} | reply
                socket_.send_multipart([peer, msgspec.json.encode(answer)])
            socket_.close()
            end.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield endpoint, reply
        stop.send(b"")
        thread.join()
        stop.close()


@pytest.mark.parametrize("arguments", REPLIES, ids=" ".join)
def test_ctl_prints_no_text_of_a_daemon_raw(hostile, capsys, arguments):
    """The output of ctl has the expected number of lines and no control characters."""
    endpoint, reply = hostile
    reply["result"], n_lines = REPLIES[arguments]
    main(["ctl", "--endpoint", endpoint, *arguments])
    text = capsys.readouterr().out
    assert HARMLESS in text
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.count("\n") == n_lines


@pytest.mark.parametrize("arguments", REPLIES, ids=" ".join)
def test_json_of_ctl_is_ascii_with_the_same_content(hostile, capsys, arguments):
    """The JSON of ctl is ASCII with escapes that programs decode to the original text."""
    endpoint, reply = hostile
    reply["result"], _ = REPLIES[arguments]
    main(["ctl", "--endpoint", endpoint, "--json", *arguments])
    text = capsys.readouterr().out
    assert all(line.isprintable() and line.isascii() for line in text.split("\n"))
    values = [json.loads(line) for line in text.splitlines()]
    if arguments == ("events",):
        assert values == reply["result"]
    elif arguments == ("record", "list"):
        assert values == [{key: STATUS[key] for key in ("recordings", "recorders")}]
    else:
        assert values == [json.loads(json.dumps(reply["result"]))]  # lists for tuples


@pytest.mark.parametrize("code", ["refused", "a code of a later version"])
def test_an_error_of_a_daemon_is_one_line(hostile, capsys, code):
    """A daemon's error is one line, which can neither forge lines nor fill the terminal."""
    endpoint, reply = hostile
    reply["error"] = {"code": code, "message": EVIL + 100_000 * "x\n"}
    assert main(["ctl", "--endpoint", endpoint, "status"]) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"spectrod: {HARMLESS}")
    assert text[:-1].isprintable()
    assert len(text) < 3000


@pytest.mark.slow
def test_one_long_name_does_not_widen_a_whole_table(hostile, capsys):
    """A table of two thousand sources stays small although one name has 100 kB."""
    endpoint, reply = hostile
    source = STATUS["sources"][0] | {"name": "a", "state": "b", "products": []}
    long = source | {"name": 100_000 * "x", "state": 100_000 * "y"}
    reply["result"] = STATUS | {"sources": [long, *[source] * 2000]}
    main(["ctl", "--endpoint", endpoint, "status"])
    assert 0 < len(capsys.readouterr().out) < 2_000_000


@pytest.mark.parametrize("depth", [900, 990, 2000])
def test_a_reply_that_is_nested_without_end_is_no_bug(hostile, capsys, depth):
    """A deeply nested reply is refused or printed, with and without --json, and is no bug."""
    endpoint, reply = hostile
    reply["result"] = msgspec.Raw(b"[" * depth + b"]" * depth)
    for flags in ([], ["--json"]):
        assert main(["ctl", "--endpoint", endpoint, *flags, "get"]) in (0, 2)
        assert "a bug" not in capsys.readouterr().err


@pytest.mark.slow
def test_why_nothing_came_is_harmless():
    """A hostile daemon's reason for waiting is escaped in errors."""
    with zmq.Context() as context, context.socket(zmq.PUB) as socket_:
        socket_.setsockopt(zmq.LINGER, 0)
        port = socket_.bind_to_random_port("tcp://127.0.0.1")
        header = {"epoch": 1, "t_utc_ns": 0, "t_mono_ns": 0, "frames": 0}
        stop = threading.Event()

        def send():
            for seq in itertools.count():
                beat = HeartbeatHeader(seq=seq, state=EVIL, waiting_for=EVIL, **header)
                socket_.send_multipart([b"hb/mic/", msgspec.json.encode(beat)])
                if stop.wait(0.05):
                    return

        thread = threading.Thread(target=send)
        thread.start()
        try:
            with pytest.raises(UnavailableError) as caught:
                next(subscribe(f"tcp://127.0.0.1:{port}", timeout_s=1.0))
        finally:
            stop.set()
            thread.join()
    assert f"the daemon is {HARMLESS} ({HARMLESS}) but sent no spectrum" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.slow
def test_a_setting_of_a_peer_is_harmless(run):
    """A source that a peer adds is shown escaped in status, settings, events and log."""
    daemon = run()
    uri = "soundcard:name=\x1b[31mRED\x1b]0;pwned\x07\u202e"
    daemon.ctl("source", "add", "bad", f"uri={uri}")
    for what in (["get"], ["get", "sources.bad.uri"], ["status"], ["events"]):
        text = daemon.ctl(*what)
        assert "pwned" in text
        assert text.replace("\n", "").isprintable()
    assert json.loads(daemon.ctl("get", "sources.bad.uri", "--json")) == uri
    daemon.assert_alive()


# ---- devices


@pytest.mark.slow
@pytest.mark.audio
def test_a_sound_card_whose_name_is_not_utf8_hides_no_other(tmp_path, monkeypatch, capsys):
    """Cards with names that are not UTF-8 are listed with all others and can be opened."""
    for name in ("PULSE_SERVER", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    cards = b"".join(
        b'pcm."' + name + b'" { type null hint { show on description "x" } }\n'
        for name in (b"first", b"caf\xe9", b"evil\x1b[31m", b"last")
    )
    (tmp_path / ".asoundrc").write_bytes(cards)
    monkeypatch.setenv("SPECTROD_SOURCE_URI", r"soundcard:api=ALSA,name=caf\xe9")
    assert main(["devices"]) == 0
    text = capsys.readouterr().out
    assert all(line.isprintable() for line in text.split("\n"))
    assert main(["devices", "--json"]) == 0
    devices = json.loads(capsys.readouterr().out)["audio_inputs"]["devices"]
    names = [device["name"] for device in devices]
    assert [name for name in names if name in ("first", r"caf\xe9", r"evil\x1b[31m", "last")] == [
        "first", r"caf\xe9", r"evil\x1b[31m", "last"
    ]  # fmt: skip
    (used,) = [device for device in devices if device["used"]]
    assert (used["name"], used["uri"]) == (r"caf\xe9", r"soundcard:api=ALSA,name=caf\xe9")
    assert 48000 in used["rates"]


# ---- patterns of file names


@pytest.mark.parametrize("pattern", ["%_I%y", "%e", "%k", "%D", "%T", "%n", "%c", "%_9Y", "%%"])
def test_a_pattern_that_can_make_an_unsafe_name_is_refused(tmp_path, capsys, pattern):
    """A pattern of file names is refused if it gives an unsafe name at any time."""
    path = tmp_path / "c.toml"
    path.write_text(f'[recordings.a]\nfile_name = "{pattern}"\n')
    assert main(["config", "check", str(path)]) == 2
    text = capsys.readouterr().err
    assert f"recordings.a: file_name='{pattern}': makes " in text
    assert "must make 1 to 100 of A-Z a-z 0-9 . _ + -, the first a letter or digit" in text
    assert text.count("\n") == 1
