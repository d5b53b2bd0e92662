"""The example programs in each language, with golden messages and with a daemon.

They are written from docs/protocol.md only, so they test what it says.
"""

import contextlib
import csv
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import zmq
from PIL import Image

import spectrod
from spectrod import client
from spectrod.config.config import Config, EngineConfig, PublishConfig, SecurityConfig, SourceConfig
from spectrod.daemon.daemon import build_daemon
from spectrod.wire.keys import make_keys

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GOLDEN_FILE = ROOT / "tests/data/golden_v1.json"
GOLDEN = json.loads(GOLDEN_FILE.read_text())
TIMEOUT_S = 60.0
LANGUAGES = ["python", "javascript", "c"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return the command of each language's subscriber; the C one is built with strict warnings."""
    assert shutil.which("node"), "Node.js is missing: make test installs it"
    assert (EXAMPLES / "node_modules/zeromq").is_dir(), "run: make examples/node_modules/.installed"
    binary = tmp_path_factory.mktemp("c") / "subscribe"
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "libzmq", "jansson"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    subprocess.run(
        [
            "cc",
            "-std=c11",
            *WARNINGS,
            *SANITIZED,
            "-o",
            binary,
            EXAMPLES / "subscribe.c",
            *flags,
            "-lm",
        ],
        check=True,
    )
    return {
        "python": [sys.executable, "-u", EXAMPLES / "subscribe.py"],
        "plain": [sys.executable, "-u", EXAMPLES / "subscribe_plain.py"],
        "javascript": ["node", EXAMPLES / "subscribe.mjs"],
        "c": [binary],
    }


@pytest.fixture
def run(programs):
    """Start programs whose output is read, and kill them after the test."""
    with contextlib.ExitStack() as started:

        def start(language, *arguments):
            process = subprocess.Popen(
                [*programs[language], *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield start


@pytest.fixture
def publisher():
    """Make a bare XPUB socket, which sends given bytes."""
    with zmq.Context() as context, context.socket(zmq.XPUB) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, int(TIMEOUT_S * 1e3))
        socket.setsockopt(zmq.SNDTIMEO, int(TIMEOUT_S * 1e3))
        socket.bind("tcp://127.0.0.1:*")
        yield socket


def wait_for(publisher, *prefixes):
    """Wait for subscriptions to all given topics."""
    missing = {b"\x01" + prefix.encode() for prefix in prefixes}
    while missing:
        missing.discard(publisher.recv())


def parts_of(golden, **changes):
    """Return a golden message with some integers of its header changed."""
    header = golden["header"]
    for name, value in changes.items():
        header, count = re.subn(rf'"{name}":-?\d+', f'"{name}":{value}', header)
        assert count == 1
    head = [golden["topic"].encode(), header.encode()]
    payload = golden["payload_hex"]
    return head if payload is None else [*head, bytes.fromhex(payload)]


def same_values(decoded, golden):
    """Return whether values equal the golden ones to the last bit."""
    if golden["payload_hex"] is None:
        return decoded is None
    dtype = json.loads(golden["header"])["dtype"]
    return np.array(decoded, dtype).tobytes().hex() == golden["payload_hex"]


def finish(process):
    """Wait for a program to end by itself; return its output."""
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()], err


@pytest.mark.slow
@pytest.mark.parametrize("language", [*LANGUAGES, "plain"])
def test_golden_messages_are_decoded_to_their_values(run, language):
    """From a file, every header field and every value is decoded to the last bit."""
    decoded, _ = finish(run(language, "--check", GOLDEN_FILE))
    assert [line["topic"] for line in decoded] == [golden["topic"] for golden in GOLDEN]
    for line, golden in zip(decoded, GOLDEN, strict=True):
        assert line["header"] == json.loads(golden["header"])
        assert same_values(line["values"], golden)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_golden_messages_are_received_to_their_values(run, publisher, language):
    """From a socket, messages with parts and fields of a later version are decoded as well."""
    endpoint = publisher.last_endpoint.decode()
    process = run(language, "--json", "--count", str(len(GOLDEN)), endpoint, "")
    wait_for(publisher, "", "hb/", "meta/")
    for golden in GOLDEN:
        topic, header, *payload = parts_of(golden)
        later = header[:-1] + b',"later":{"a":[1,"\\u00e9"]}}'
        publisher.send_multipart([topic, later, *payload, *([b"more"] if payload else [])])
    decoded, err = finish(process)
    assert err == ""
    for line, golden in zip(decoded, GOLDEN, strict=True):
        header = json.loads(golden["header"])
        assert {name: line["header"][name] for name in header} == header
        assert same_values(line["values"], golden)
        assert (line["missed"], line["restarted"]) == (0, False)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_holes_restarts_and_nonsense_are_reported(run, publisher, language):
    """Losses are counted, a new epoch is seen, and invalid messages are skipped."""
    spectrum = next(golden for golden in GOLDEN if golden["name"] == "spectrum")
    topic, header, payload = parts_of(spectrum)
    process = run(language, "--json", "--count", "4", publisher.last_endpoint.decode())
    wait_for(publisher, "spec/", "hb/", "meta/")
    nonsense = [
        [topic],
        [topic, b"no JSON", payload],
        [topic, b"[]", payload],
        [topic, header],
        [topic, header, payload[:-1]],
        [topic, header, payload[:-4]],
        [topic, header.replace(b"<f4", b"|O8"), payload],
        [topic, header.replace(b"<f4", b"<f8"), payload],
        [topic, header.replace(b'"v":1', b'"v":2'), payload],
        [topic, header.replace(b'"seq":', b'"number":'), payload],
        [topic, header.replace(b'"epoch":', b'"epoch":0.5,"begin":'), payload],
        [topic, header.replace(b"[33]", b"[32]"), payload[:-4]],
        [topic, header.replace(b"[33]", b"[33,1]"), payload],
        [topic, header[:-1] + b',"later":' + b'{"a":' * 100_000, payload],
    ]
    for parts in [
        *nonsense,
        parts_of(spectrum, seq=7),
        parts_of(spectrum, seq=8),
        parts_of(spectrum, seq=11),
        parts_of(spectrum, seq=0, epoch=2**53 - 1),
    ]:
        publisher.send_multipart(parts)
    decoded, err = finish(process)
    assert [line["missed"] for line in decoded] == [0, 0, 2, 0]
    assert [line["restarted"] for line in decoded] == [False, False, False, True]
    assert [line["header"]["seq"] for line in decoded] == [7, 8, 11, 0]
    assert decoded[-1]["header"]["epoch"] == 2**53 - 1
    assert len(re.findall("^left out: ", err, re.MULTILINE)) == len(nonsense)
    assert len(err.splitlines()) == len(nonsense)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "javascript", "c", "plain"])
def test_a_person_is_shown_peak_holes_and_restarts(run, publisher, language):
    """Standard output has frequency, level, unit, and may be closed; standard error has losses."""
    spectrum = next(golden for golden in GOLDEN if golden["name"] == "spectrum")
    process = run(language, publisher.last_endpoint.decode())
    wait_for(publisher, "spec/", "hb/")
    for changes in ({"seq": 7}, {"seq": 11}, {"seq": 0, "epoch": 1}):
        publisher.send_multipart(parts_of(spectrum, **changes))
        assert process.stdout.readline() == "spec/mic1/0/dbfs/ 6000.0 Hz -20.00 dBFS\n"
    radio = parts_of(spectrum, seq=1, epoch=1, center_frequency_hz=433_920_000)
    publisher.send_multipart(radio)
    assert process.stdout.readline() == "spec/mic1/0/dbfs/ 433926000.0 Hz -20.00 dBFS\n"
    process.stdout.close()  # as `| head` does
    for seq in itertools.count(2):
        publisher.send_multipart(parts_of(spectrum, seq=seq, epoch=1))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
            break
    err = process.stderr.read().splitlines()
    assert "spec/mic1/0/dbfs/ 3 missed before seq 11" in err
    assert "spec/mic1/0/dbfs/ the daemon was restarted" in err
    assert {line.partition(" ")[0] for line in err} == {"spec/mic1/0/dbfs/"}, err


@pytest.fixture
def start_daemon():
    """Start daemons, which by default analyse a tone in bin 128 at -20 dBFS."""
    with contextlib.ExitStack() as started:

        def start(endpoint="tcp://127.0.0.1:*", uri="signal:sine,1500,-20"):
            daemon = build_daemon(
                Config(
                    source=SourceConfig(uri=uri, name="tone"),
                    publish=PublishConfig(endpoints=(endpoint,)),
                    engine=EngineConfig("numpy"),
                )
            )
            daemon.start()
            started.callback(daemon.stop)
            return daemon

        yield start


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_late_subscriber_reads_messages_and_sees_a_restart(run, start_daemon, language):
    """A late subscriber reads the tone's bin and level like our client, and sees a restart."""
    first = start_daemon()
    endpoint = first.publisher.endpoints[0]
    with client.subscribe(endpoint, timeout_s=TIMEOUT_S) as frames:
        while next(frames).header.seq < 3:  # the program comes late
            pass
        process = run(language, "--json", endpoint)
        lines = map(json.loads, process.stdout)
        read = {}
        met_meta = False
        while len(read) < 10 or not met_meta:
            line = next(lines)
            met_meta |= line["topic"] == "meta/tone/0/dbfs/"
            if line["topic"] == "spec/tone/0/dbfs/":
                read[line["header"]["seq"]] = line
        own = {}
        while max(own, default=0) < max(read):
            frame = next(frames)
            own[frame.header.seq] = frame
    assert min(read) >= 3
    assert {line["missed"] for line in read.values()} == {0}
    for seq, line in read.items():
        assert np.array(line["values"], "<f4").tobytes() == own[seq].values.tobytes()
        header = line["header"]
        assert header["t_utc_ns"] == own[seq].header.t_utc_ns
        k = int(np.argmax(line["values"]))
        assert k * header["fs"] / header["nfft"] == 1500.0
        assert abs(line["values"][k] + 20.0) < 1e-3
    first.stop()
    start_daemon(endpoint)
    line = next(line for line in lines if line["restarted"] and line["topic"].startswith("spec/"))
    assert line["header"]["epoch"] != header["epoch"]


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_daemon_that_asks_for_keys_is_read_with_one(run, tmp_path, language):
    """With a key from `spectrod keys new`, as in docs/security.md, the programs read a daemon."""
    server_key = make_keys(tmp_path / "server", "server", "read")[1]
    public, secret = make_keys(tmp_path / "mine", "mine", "read")
    clients = tmp_path / "clients"
    clients.mkdir()
    shutil.copy(public, clients)
    settings = Config(
        source=SourceConfig(uri="signal:sine,1500,-20", name="tone"),
        publish=PublishConfig(endpoints=("tcp://127.0.0.1:*",)),
        security=SecurityConfig(
            server_key=str(server_key), client_keys=str(clients), require="always"
        ),
        engine=EngineConfig("numpy"),
    )
    daemon = build_daemon(settings)
    daemon.start()
    try:
        keys = ["--key", secret, "--server-key", server_key.with_suffix(".pub")]
        endpoint = daemon.publisher.endpoints[0]
        decoded, err = finish(run(language, "--json", "--count", "2", *keys, endpoint))
    finally:
        daemon.stop()
    assert err == ""
    assert sum(line["topic"] == "spec/tone/0/dbfs/" for line in decoded) == 2


def rows_of(path):
    """Read a CSV file as dicts."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_levels_are_logged_across_restarts_of_logger_and_daemon(start_daemon, tmp_path):
    """Levels are appended under one heading across restarts, and a torn row is removed."""
    daemon = start_daemon()
    endpoint = daemon.publisher.endpoints[0]
    path = tmp_path / "levels.csv"
    command = [sys.executable, EXAMPLES / "log_to_csv.py", path, endpoint, "--interval", "1"]

    def log_until(condition):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        with process:
            try:
                wait_for_rows(process, condition)
            finally:
                process.terminate()
            assert process.stderr.read() == ""
        assert process.returncode == 0

    def wait_for_rows(process, condition):
        deadline_s = time.monotonic() + TIMEOUT_S
        with client.subscribe(endpoint, timeout_s=TIMEOUT_S) as frames:
            while not (path.exists() and condition(rows_of(path))):
                next(frames)  # the clock of this loop
                assert time.monotonic() < deadline_s, process.poll()

    log_until(lambda rows: len(rows) >= 2)
    before = rows_of(path)
    with path.open("a") as file:
        file.write("2026-01-01T00:00:00+00:00,tone,0")  # a power failure
    log_until(lambda rows: len(rows) >= len(before) + 2)
    rows = rows_of(path)
    assert rows[: len(before)] == before
    assert ",".join(rows[0]) == (
        "time_utc,source,channel,product,level,max_level,unit,spectra,missed,restarts"
    )
    for row in rows:
        assert (row["source"], row["channel"], row["product"]) == ("tone", "0", "dbfs")
        assert abs(float(row["level"]) + 20.0) <= 0.01
        assert float(row["max_level"]) >= float(row["level"])
        assert (row["unit"], row["missed"], row["restarts"]) == ("dBFS", "0", "0")
        assert datetime.fromisoformat(row["time_utc"]).utcoffset() == timedelta(0)
    whole = [int(row["spectra"]) for row in rows[1 : len(before) - 1]]
    assert all(46 <= spectra <= 48 for spectra in whole)  # 48000 / 1024 per second


@pytest.mark.slow
def test_a_level_does_not_depend_on_window_length_or_scaling(monkeypatch):
    """White noise of -20 dBFS, and a tone between bins, read the same from each scaling."""
    monkeypatch.syspath_prepend(EXAMPLES)
    from log_to_csv import mean_power  # noqa: PLC0415 - an example is no package

    rng = np.random.default_rng(5)
    noise = rng.normal(0.0, 0.1 / np.sqrt(2.0), 1 << 17)
    tone = 0.1 * np.sin(2 * np.pi * 0.123456789 * np.arange(1 << 17))
    for samples in (noise, tone):
        for win_length, window, scaling in itertools.product(
            (1024, 2047), ("hann", "flattop", "rectangular"), ("dbfs", "spectrum", "density")
        ):
            settings = {"window": window, "win_length": win_length, "scaling": scaling}
            got = spectrod.spectrogram(samples, 48_000, engine="numpy", **settings)
            spec = got.spec
            header = {"fs": spec.fs, "nfft": spec.nfft, "unit": got.unit, "enbw_hz": spec.enbw_hz}
            powers = [mean_power(header, row) for row in got.values.T]
            level = 10.0 * np.log10(np.mean([power for power, _ in powers]))
            assert abs(level + 20.0) < 0.05, (window, win_length, scaling)
            assert {unit for _, unit in powers} == {"dBFS"}


@pytest.mark.slow
def test_a_picture_is_plotted_without_a_screen(start_daemon, tmp_path):
    """The plot of pink noise is a line that falls by 10 dB a decade."""
    daemon = start_daemon(uri="signal:pink,-20")
    path = tmp_path / "plot.png"
    command = [sys.executable, EXAMPLES / "live_plot.py", "--save", path]
    environment = os.environ | {"MPLBACKEND": "agg", "MPLCONFIGDIR": os.fspath(tmp_path)}
    subprocess.run([*command, daemon.publisher.endpoints[0]], check=True, env=environment)
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB"), int)
    assert pixels.shape == (480, 640, 3)
    blue = (pixels[..., 2] - pixels[..., 0]) > 60  # matplotlib's first colour
    blue[:60] = False  # the legend has its colour, too
    drawn = np.flatnonzero(blue.any(axis=0))
    assert drawn[-1] - drawn[0] > 400
    first, last = (np.flatnonzero(blue[:, drawn[k]]).mean() for k in (10, -10))
    assert last - first > 40
