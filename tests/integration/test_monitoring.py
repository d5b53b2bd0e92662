"""Metrics and health of a running daemon: over HTTP, over the control socket, in a file."""

import contextlib
import json
import os
import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_prometheus

from spectrod.cli import main
from spectrod.client import subscribe
from spectrod.config import config
from spectrod.daemon.control.controlled import ControlledDaemon
from spectrod.daemon.daemon import build_daemon
from spectrod.lib.errors import BusyError, ConfigError

FLAGS = {
    "source": {"uri": "signal:sine,1000,-20", "name": "tone", "channels": 2},
    "engine": {"engine": "numpy"},
    "publish": {"endpoints": ["tcp://127.0.0.1:*"], "on_demand": False},
    "http": {"listen": "127.0.0.1:0"},
}
TIMEOUT_S = 30.0

pytestmark = pytest.mark.slow


def load(path=os.devnull, **flags):
    return config.load(path, FLAGS | flags)


@pytest.fixture
def daemon(machine):
    """Run a daemon with one source and metrics over HTTP."""
    path = machine / "c.toml"
    path.write_text("")
    running = ControlledDaemon(build_daemon(load()), load(), lambda: load(str(path)))
    try:
        running.start()
        yield running
    finally:
        running.stop()


def get(daemon, path, **fields):
    """Return status, type and text of a reply."""
    request = urllib.request.Request(f"http://{daemon.http.address}{path}", headers=fields)
    try:
        reply = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310 - of the daemon
    except urllib.error.HTTPError as error:
        reply = error
    with reply:
        return reply.status, reply.headers["Content-Type"], reply.read().decode()


def read(text, reader=read_prometheus):
    return {
        (one.name, one.labels.get("channel", "")): one.value
        for family in reader(text)
        for one in family.samples
    }


def wait_for_level(daemon):
    """Scrape until each channel has a level, a second after the start."""
    while ("spectrod_channel_level_dbfs", "0") not in (samples := read(get(daemon, "/metrics")[2])):
        pass
    return samples


def test_a_scrape_shows_the_levels_of_a_tone(daemon):
    """A tone of -20 dBFS is in the metrics as such: its samples and its spectrum."""
    samples = wait_for_level(daemon)
    for channel in ("0", "1"):
        assert samples["spectrod_channel_level_dbfs", channel] == pytest.approx(-20.0, abs=0.01)
        # A frame begins and ends within a period of the tone.
        assert samples["spectrod_product_level_db", channel] == pytest.approx(-20.0, abs=0.05)
    assert samples["spectrod_source_up", ""] == 1
    assert samples["spectrod_source_messages_total", ""] > 0


def test_the_client_chooses_the_format(daemon):
    """A client that names OpenMetrics gets it, every other one the older format."""
    status, media_type, text = get(
        daemon, "/metrics", Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    )
    assert (status, media_type.partition(";")[0]) == (200, "application/openmetrics-text")
    assert read(text, read_open)["spectrod_source_up", ""] in (0, 1)
    status, media_type, text = get(daemon, "/metrics")
    assert (status, media_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert get(daemon, "/nope")[0] == 404


def test_health_and_readiness_give_reasons(daemon):
    """A recording that cannot be written is a reason not to be ready, as text and as JSON."""
    wait_for_level(daemon)
    assert get(daemon, "/readyz") == (200, "text/plain; charset=utf-8", "ok\n")
    assert main(["ctl", "set", 'recordings.full={"min_free_mb": 1e9}']) == 0
    while get(daemon, "/readyz")[0] == 200:
        pass
    status, media_type, text = get(daemon, "/readyz", Accept="application/json")
    assert (status, media_type) == (503, "application/json")
    reply = json.loads(text)
    assert reply["ok"] is False
    assert reply["reasons"][0].startswith("recording full of tone: full")
    assert get(daemon, "/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
    while read(get(daemon, "/metrics")[2]).get(("spectrod_recording_failed", "")) != 1:
        pass  # an exposition is repeated for half a second


def test_a_refused_reload_is_in_the_metrics_and_the_status(daemon, machine, capsys):
    """After a reload that failed the metric is 0 with the old time, after the next one 1."""

    def state():
        samples = read(daemon._methods._metrics_in("prometheus"))
        prefix = "spectrod_config_last_reload_success"
        return samples[f"{prefix}ful", ""], samples[f"{prefix}_timestamp_seconds", ""]

    loaded, first_s = state()
    assert loaded == 1
    (machine / "c.toml").write_text("[analysis]\nhop = 0\n")
    with pytest.raises(ConfigError, match="hop=0") as refused:
        daemon.settings.reload()
    assert daemon.settings.last_load.error == str(refused.value)
    while state()[0]:
        pass  # an exposition is repeated for half a second
    assert state() == (0, first_s)
    assert main(["ctl", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["daemon"]["reload"]["is_ok"] is False
    (machine / "c.toml").write_text("")
    daemon.settings.reload()
    assert daemon.settings.last_load.is_ok
    while not state()[0]:
        pass
    assert state()[1] > first_s


def test_ctl_writes_the_file_of_a_textfile_collector(daemon, machine, capsys):
    """The command replaces the file as a whole, readable by everyone, and leaves nothing else."""
    target = machine / "collector" / "spectrod.prom"
    target.parent.mkdir()
    target.write_text("old")
    command = ["ctl", "metrics", "--format", "prometheus"]
    assert main([*command, "--output", str(target)]) == 0
    assert read(target.read_text())["spectrod_source_up", ""] in (0, 1)
    assert target.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in target.parent.iterdir()] == ["spectrod.prom"]
    capsys.readouterr()
    assert main(["ctl", "metrics", "--format", "openmetrics"]) == 0
    assert capsys.readouterr().out.endswith("# EOF\n")
    before = target.read_text()
    assert main([*command, "--output", str(machine / "nope" / "x.prom")]) == 74
    assert main([*command, "--json"]) == 2
    assert "--json and --format prometheus: must be one of the two" in capsys.readouterr().err
    assert target.read_text() == before


def test_an_address_in_use_ends_the_start(daemon):
    """A second daemon at the same address does not start, and leaves nothing running."""
    flags = {"http": {"listen": daemon.http.address}}
    second = ControlledDaemon(build_daemon(load(**flags)), load(**flags), load)
    with pytest.raises(BusyError, match=r"http\.listen='127\.0\.0\.1:\d+': Address already in use"):
        second.start()
    second.stop()


def test_an_address_for_everybody_is_refused():
    """An address that other machines reach needs http.insecure."""
    with pytest.raises(ConfigError, match=r"http\.listen='0\.0\.0\.0:9733': anyone on the network"):
        load(http={"listen": "0.0.0.0:9733"})
    assert load(http={"listen": "0.0.0.0:9733", "insecure": True}).http.insecure


def test_hostile_connections_cost_subscribers_nothing(daemon):
    """While 100 connections hang and others scrape, a subscriber misses nothing."""
    (endpoint,) = daemon._daemon.publisher.endpoints
    host, _, port = daemon.http.address.rpartition(":")
    with contextlib.ExitStack() as cleanup:
        frames = cleanup.enter_context(
            contextlib.closing(subscribe(endpoint, "spec/tone/0/", timeout_s=TIMEOUT_S))
        )
        next(frames)
        n_scrapes = 0
        for k in range(100):
            sock = cleanup.enter_context(
                socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
            )
            sock.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"y" * (k * 40))
            if k % 10 == 0:
                n_scrapes += get(daemon, "/metrics")[0] == 200
            frame = next(frames)
            assert (frame.missed, frame.header.gap_samples, frame.header.dropped) == (0, 0, 0)
    assert n_scrapes == 10
