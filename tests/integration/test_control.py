"""Every method of the control socket, on a running daemon."""

import json
import logging
import queue
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import pytest
import zmq
from PIL import Image

from spectrod.client import Control, subscribe
from spectrod.client.rpc_codec import messages_of
from spectrod.config import config
from spectrod.daemon import recordings
from spectrod.daemon.access.access import Access
from spectrod.daemon.access.peer import Peer
from spectrod.daemon.control import replay_requests
from spectrod.daemon.control.controlled import ControlledDaemon
from spectrod.daemon.daemon import build_daemon
from spectrod.daemon.publisher.source_publisher import SourcePublisher as Source
from spectrod.formats.picture.embedded import METADATA_KEY
from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    DeniedError,
    NotFoundError,
    SpectrodError,
    StorageError,
    UnavailableError,
)
from spectrod.wire.requests import METHODS, ErrorCode
from spectrod.wire.schema import decode

DOCS = Path(__file__).parents[2] / "docs"
CONFIG = """
[sources.tone]
uri = "signal:sine,1000,-20"
[sources."low.noise"]
uri = "signal:white,-40"
channels = 2
analysis = {{ hop = 512, win_length = 1024 }}
[products.slow]
averaging = "exponential"
rate_hz = 10
[products.thirds]
bands = "third-octave"
scaling = "spectrum"
[engine]
engine = "numpy"
[publish]
endpoints = ["tcp://127.0.0.1:*"]
[control]
requests_per_s = 100000
endpoints = ["ipc://{folder}/c.ipc"]
state_folder = "{folder}/state"
"""


@pytest.fixture(autouse=True)
def _log_level():
    root = logging.getLogger()
    before = root.level
    yield
    root.setLevel(before)


@contextmanager
def running(folder, text=CONFIG):
    """Run a daemon of a configuration file; return it with a client."""
    path = folder / "c.toml"
    path.write_text(text.format(folder=folder))
    load = lambda: config.load(str(path))  # noqa: E731
    settings = load()
    daemon = ControlledDaemon(build_daemon(settings), settings, load)
    try:
        daemon.start()
        with Control(daemon.endpoints[0], timeout_s=20) as control:
            yield daemon, control
    finally:
        daemon.stop()


@pytest.fixture
def folder(tmp_path, monkeypatch, request):
    """Make a folder whose path is short enough for a socket's address."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def control(folder):
    """Make a client of a running daemon."""
    with running(folder) as (_, client):
        yield client


def reported(control, kind):
    return [event["text"] for event in control.call("events") if event["kind"] == kind]


def sources(control):
    return {source["name"]: source for source in control.call("status")["sources"]}


def newest(control, topic, after_seq=-1):
    result, parts = control.call_parts(
        "latest", topic=topic, after_seq=after_seq, timeout_s=20, epoch=0
    )
    ((message,), _) = messages_of(result, parts)
    return decode(message)


# ---- methods that read


def test_status_describes_the_daemon_and_each_source(control):
    """The status has the daemon's and each source's state, counters and losses."""
    first = newest(control, "spec/tone/0/dbfs/")
    newest(control, "spec/tone/0/dbfs/", first.header.seq)  # by then the first one is counted
    status = control.call("status")
    daemon = status["daemon"]
    assert daemon["publish"][0].startswith("tcp://127.0.0.1:")
    assert daemon["control"][0].endswith("/c.ipc")
    assert daemon["engines"] == ["numpy"]
    assert daemon["uptime_s"] > 0
    assert daemon["requests"]["requests"] == 3
    tone, noise = status["sources"]
    assert (tone["name"], tone["fs"], tone["channels"]) == ("tone", 48000.0, 1)
    assert (noise["name"], noise["channels"]) == ("low.noise", 2)
    assert tone["products"] == ["dbfs", "slow", "thirds"]
    assert tone["messages"] >= 1
    assert tone["frames"] == tone["rows"] >= 1
    assert status["recordings"] == []


def test_metrics_are_the_counters_of_the_status(control):
    """Metrics equal the status counters, with unique names, units and the source as a label."""
    metrics = control.call("metrics")
    assert all(set(one) == {"name", "value", "unit", "labels"} for one in metrics)
    keys = [(one["name"], *sorted(one["labels"].items())) for one in metrics]
    assert len(set(keys)) == len(keys)
    rate = [one for one in metrics if one["name"] == "spectrod_source_sample_rate_hertz"]
    assert [one["labels"]["source"] for one in rate] == ["tone", "low.noise"]
    assert {(one["value"], one["unit"]) for one in rate} == {(48000.0, "Hz")}


@pytest.mark.slow
def test_replay_gives_the_messages_as_they_were_sent(folder):
    """A replay gives the bytes that a subscriber received, from the requested number on."""
    with running(folder) as (_, control):
        (endpoint,) = control.call("status")["daemon"]["publish"]
        with subscribe(endpoint, "spec/tone/0/dbfs/", timeout_s=20) as subscription:
            frames = [next(subscription) for _ in range(6)]
        first = frames[2].header.seq
        result, parts = control.call_parts(
            "replay", topic="spec/tone/0/dbfs/", first_seq=first, limit=3
        )
        messages, more = messages_of(result, parts)
        assert result["epoch"] == frames[0].header.epoch
        assert more
        for frame, message in zip(frames[2:5], messages, strict=True):
            replayed = decode(message)
            assert replayed.header == frame.header
            assert replayed.values.tobytes() == frame.values.tobytes()


def test_replay_of_another_epoch_or_the_future_gives_nothing(control):
    """A replay of another epoch or of the future is empty, and an unknown topic is an error."""
    seq = newest(control, "spec/tone/0/dbfs/").header.seq
    for params in ({"first_seq": seq + 10**9}, {"first_seq": 0, "epoch": 1}):
        result, parts = control.call_parts("replay", topic="spec/tone/0/dbfs/", **params)
        assert (result["parts"], result["more"], list(parts)) == ([], False, [])
    with pytest.raises(NotFoundError, match="topic='spec/x/0/dbfs/': does not exist; there are: "):
        control.call("replay", topic="spec/x/0/dbfs/", first_seq=0)


@pytest.mark.slow
def test_a_replay_is_divided_into_replies_of_a_bounded_size(folder, monkeypatch):
    """A replay comes in replies of bounded size with at least one message each."""
    monkeypatch.setattr(replay_requests, "REPLY_MAX_BYTES", 1)
    with running(folder) as (_, control):
        topic = "spec/tone/0/dbfs/"
        (endpoint,) = control.call("status")["daemon"]["publish"]
        with subscribe(endpoint, topic, timeout_s=20) as subscription:
            seqs = [next(subscription).header.seq for _ in range(4)]
        got, more, first_seq = [], True, seqs[0]
        while more and len(got) < 4:
            result, parts = control.call_parts("replay", topic=topic, first_seq=first_seq)
            (message,), more = messages_of(result, parts)
            got.append(decode(message).header.seq)
            first_seq = got[-1] + 1
        assert got == seqs


def test_latest_computes_a_product_without_other_demand(control):
    """The method latest makes an idle product compute a new message, then idle again."""
    first = newest(control, "bands/tone/0/thirds/")
    second = newest(control, "bands/tone/0/thirds/", first.header.seq)
    assert second.header.seq > first.header.seq
    assert second.header.sample_index > first.header.sample_index


@pytest.mark.slow
def test_latest_waits_for_one_client_while_another_is_answered(control):
    """While latest waits for a paused source until its timeout, other clients are answered."""
    seq = newest(control, "spec/tone/0/dbfs/").header.seq
    control.call("pause")
    outcome = []
    with Control(control.call("status")["daemon"]["control"][0], timeout_s=20) as other:

        def wait():
            outcome.append(
                other.call("latest", topic="spec/tone/0/dbfs/", after_seq=seq + 999, timeout_s=0.3)
            )

        thread = threading.Thread(target=wait)
        thread.start()
        while thread.is_alive():
            assert control.call("get", key="log.level") == "info"
        thread.join()
    assert outcome[0]["parts"] == []


@pytest.mark.parametrize(
    ("topic", "error", "text"),
    [
        ("spec/x/0/dbfs/", NotFoundError, "source='x': does not exist; there are: tone, low.noise"),
        ("spec/tone/0/x/", NotFoundError, "topic='spec/tone/0/x/': does not exist"),
        (
            "spec/tone/9/dbfs/",
            NotFoundError,
            "topic='spec/tone/9/dbfs/': does not exist; there are",
        ),
        ("spec/", ConfigError, "topic='spec/': must be spec/SOURCE/CHANNEL/PRODUCT/, bands/...,"),
        ("spec/tone/0/dbfs", ConfigError, "topic='spec/tone/0/dbfs': must be spec/SOURCE/CHANNEL"),
        ("hb/tone/", ConfigError, "topic='hb/tone/': must be"),
        ("", ConfigError, "topic='': must be"),
    ],
)
def test_latest_of_a_topic_that_cannot_be_is_refused(topic, error, text, control):
    """The method latest refuses an impossible topic at once with a list of topics."""
    with pytest.raises(error) as refused:
        control.call("latest", topic=topic, timeout_s=60)
    assert str(refused.value).startswith(text)


# ---- methods that change something


def test_a_change_of_the_analysis_is_seen_by_subscribers(control):
    """Subscribers see a change of the analysis soon, and only for the named source."""
    control.call("set", changes={'sources."low.noise".analysis.hop': 256})
    seq = -1
    while (message := newest(control, "spec/low.noise/1/dbfs/", seq)).header.hop != 256:
        seq = message.header.seq
    assert newest(control, "spec/tone/0/dbfs/").header.hop == 1024
    assert control.call("get", key='sources."low.noise".analysis.hop') == 256
    assert reported(control, "control.set") == ['sources."low.noise".analysis.hop: 512 -> 256']
    assert control.call("status")["daemon"]["set"] == ['sources."low.noise".analysis.hop']


def test_subscribers_miss_nothing_until_the_publisher_knows_of_a_change(folder, monkeypatch):
    """Products that a change brings are computed until the publisher has matched subscriptions."""
    matched, must_wait, update_demand = queue.Queue(), threading.Event(), Source.update_demand

    def update_late(source, covers):
        if must_wait.is_set() and source.name == "low.noise":
            must_wait.clear()
            end = daemon.stats()[1].samples + 24000  # 46 rows
            while daemon.stats()[1].samples < end:
                threading.Event().wait(0.01)
        update_demand(source, covers)
        matched.put(source.topics)

    monkeypatch.setattr(Source, "update_demand", update_late)
    key, topic = 'sources."low.noise".analysis.bands', "spec/low.noise/0/dbfs/"
    with running(folder) as (daemon, control):
        (endpoint,) = control.call("status")["daemon"]["publish"]
        with subscribe(endpoint, topic, timeout_s=20) as frames:
            next(frames)
            control.call("set", changes={key: "third-octave"})
            while "bands/low.noise/0/dbfs/" not in matched.get(timeout=20):
                pass
            must_wait.set()
            control.call("set", changes={key: ""})
            for _ in range(100):
                assert next(frames).missed == 0


def test_products_come_and_go(control):
    """A product's table that is set adds a product, and None removes it."""
    control.call("set", changes={"products.fast": {"hop": 128}, "products.thirds": None})
    seq = -1
    while "fast" not in sources(control)["tone"]["products"]:
        seq = newest(control, "spec/tone/0/dbfs/", seq).header.seq
    assert sources(control)["tone"]["products"] == ["dbfs", "slow", "fast"]
    assert newest(control, "spec/tone/0/fast/").header.hop == 128


def test_a_change_that_an_engine_refuses_changes_nothing(control):
    """If the engine refuses a change, all sources and settings stay as before."""
    before = control.call("get")
    with pytest.raises(SpectrodError):
        control.call("set", changes={"sources.tone.analysis.nfft": 3, "log.level": "debug"})
    assert control.call("get") == before
    assert newest(control, "spec/tone/0/dbfs/").header.nfft == 4096


def test_a_reload_applies_the_file_and_drops_earlier_changes(folder):
    """A reload applies the file, drops settings made by set, and adds and removes sources."""
    with running(folder) as (_, control):
        control.call("set", changes={"sources.tone.analysis.hop": 300})
        text = CONFIG.format(folder=folder).replace("[engine]", '[sources.b]\nuri="auto"\n[engine]')
        text = text.replace('uri="auto"', 'uri="signal:white,-50"').replace("rate_hz = 10", "")
        (folder / "c.toml").write_text(text)
        lines = control.call("reload")
        assert "applied sources.tone.analysis.hop (the file wins over set)" in lines
        assert "applied sources.b" in lines
        assert list(sources(control)) == ["tone", "low.noise", "b"]
        assert control.call("status")["daemon"]["set"] == []
        (folder / "c.toml").write_text("[analysis]\nhop = 0\n")
        with pytest.raises(ConfigError, match="hop=0: must be"):
            control.call("reload")
        assert list(sources(control)) == ["tone", "low.noise", "b"]


def test_pause_and_resume_of_one_source_or_all(control):
    """A paused source computes nothing while the others continue."""
    assert control.call("pause", source="tone") == ["tone"]
    assert sources(control)["tone"]["state"] == "paused"
    assert sources(control)["low.noise"]["state"] != "paused"
    assert control.call("resume", source="tone") == ["tone"]
    assert sources(control)["tone"]["state"] != "paused"
    assert control.call("pause") == ["tone", "low.noise"]
    assert {source["state"] for source in sources(control).values()} == {"paused"}
    assert control.call("resume") == ["tone", "low.noise"]
    assert len(reported(control, "control.pause")) == 3


def test_reset_restarts_averages(control):
    """A reset restarts averages of one or all products, and refuses an unknown one first."""
    assert control.call("reset") == ["tone", "low.noise"]
    assert control.call("reset", source="tone", product="slow") == ["tone"]
    text = "product='x': no source has it; there are: dbfs, slow, thirds"
    with pytest.raises(NotFoundError, match=text):
        control.call("reset", product="x")
    text = "product='x': tone has no such product; there are: dbfs, slow, thirds"
    with pytest.raises(NotFoundError, match=text):
        control.call("reset", source="tone", product="x")
    assert reported(control, "control.reset") == ["all products", "all products", "slow"]


def test_a_source_that_is_away_keeps_no_other_from_a_reset(control):
    """A reset of all skips sources that are absent or lack the product; by name it is an error."""
    control.call("source.add", name="away", settings={"uri": "soundcard:no such card"})
    change = {"products.own": {"hop": 100, "sources": ["tone"]}}
    control.call("set", changes=change)
    seq = -1
    while "own" not in sources(control)["tone"]["products"]:
        seq = newest(control, "spec/tone/0/dbfs/", seq).header.seq
    assert control.call("reset") == ["tone", "low.noise"]
    assert control.call("reset", product="own") == ["tone"]
    before = reported(control, "control.reset")
    with pytest.raises(UnavailableError, match="away: waiting: "):
        control.call("reset", source="away")
    assert reported(control, "control.reset") == before
    with pytest.raises(
        UnavailableError, match="source='away': no data: the source waits for its device"
    ):
        control.call("record.start", source="away")


@pytest.mark.parametrize("method", ["pause", "resume", "reset"])
def test_an_unknown_source_is_an_error(method, control):
    """An unknown source is an error with the names of the sources."""
    text = "source='x': does not exist; there are: tone, low.noise"
    with pytest.raises(NotFoundError, match=text):
        control.call(method, source="x")


def test_adding_and_removing_a_source_leaves_others_running(control):
    """An added source can be received, a removed one leaves the status, and others continue."""
    settings = {"uri": "signal:sine,440,-10", "analysis": {"hop": 256}}
    control.call("source.add", name="b", settings=settings)
    message = newest(control, "spec/b/0/dbfs/")
    assert message.header.hop == 256
    assert abs(message.f[message.values.argmax()] - 440) < 12
    before = sources(control)["tone"]["samples"]
    control.call("source.remove", name="b")
    assert list(sources(control)) == ["tone", "low.noise"]
    assert sources(control)["tone"]["samples"] >= before
    with pytest.raises(NotFoundError, match="source='b': does not exist"):
        control.call("latest", topic="spec/b/0/dbfs/")
    assert [len(reported(control, kind)) for kind in ("source.add", "source.remove")] == [1, 1]


def test_an_unnamed_source_continues_when_another_is_added_and_removed(folder):
    """An unnamed source keeps its sample numbers while another is added and removed by a reload."""
    single = CONFIG.partition("[sources.tone]")[2].partition("[sources")[0]
    text = "[source]" + single + "[engine]" + CONFIG.partition("[engine]")[2]
    with running(folder, text) as (_, control):
        seq = newest(control, "spec/signal/0/dbfs/").header.seq
        control.call("source.add", name="b", settings={"uri": "signal:white,-20"})
        control.call("reload")
        assert list(sources(control)) == ["signal"]
        before, after = seq, newest(control, "spec/signal/0/dbfs/", seq).header
        assert after.seq > before
        assert after.sample_index // after.hop >= after.seq


# ---- recordings


def finished(control):
    """Wait until no recording runs, with each message of a running source."""
    seq = -1
    while any(one["state"] == "recording" for one in control.call("status")["recordings"]):
        seq = newest(control, "spec/low.noise/0/dbfs/", seq).header.seq
    return control.call("status")["recordings"]


def wait_for_event(control, kind):
    """Return the text of the first event of a kind, which follows the state that it reports."""
    seq = -1
    while not (texts := reported(control, kind)):
        seq = newest(control, "spec/low.noise/0/dbfs/", seq).header.seq
    return texts[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "product", "unit"),
    [("tone", "", "dBFS"), ("low.noise", "dbfs", "dBFS"), ("tone", "slow", "dBFS")],
)
def test_a_picture_ends_by_itself_after_its_duration(source, product, unit, control, folder):
    """A picture with a duration is completed in the state folder, with events at start and end."""
    started = control.call("record.start", source=source, product=product, duration_s=0.5)
    assert started["state"] == "recording"
    (one,) = finished(control)
    assert (one["state"], one["error"]) == ("finished", "")
    assert one["frames"] == one["rows"] >= 4
    (path,) = (folder / "state").iterdir()
    assert str(path) == one["path"] == started["path"]
    with Image.open(path) as picture:
        about = json.loads(picture.text[METADATA_KEY])
    assert about["level_unit"] == unit
    assert 0.4 < about["duration_s"] < 0.7
    assert reported(control, "record.start") == [path.name]
    assert wait_for_event(control, "record.stop").startswith(f"{path.name}: finished, ")


@pytest.mark.slow
def test_levels_in_a_picture_are_those_of_the_product(control, folder):
    """A -20 dBFS tone is drawn as -20 dBFS, though the product has levels and not power."""
    control.call("record.start", source="tone", name="a", duration_s=0.4)
    finished(control)
    with Image.open(folder / "state" / "a.png") as picture:
        about = json.loads(picture.text[METADATA_KEY])
    assert about["level_max"] == -20.0


@pytest.mark.slow
def test_pictures_are_finished_by_stop_and_when_the_daemon_stops(folder):
    """A stop by name and the daemon's end both complete pictures."""
    with running(folder) as (_, control):
        for name in ("a", "b.png", "c"):
            control.call("record.start", source="tone", name=name)
        seq = newest(control, "spec/tone/0/dbfs/").header.seq
        newest(control, "spec/tone/0/dbfs/", seq + 3)
        (stopped,) = control.call("record.stop", name="a")
        assert (stopped["name"], stopped["state"]) == ("a.png", "finished")
        (stopped,) = control.call("record.stop", name="b.png")
    assert sorted(path.name for path in (folder / "state").iterdir()) == ["a.png", "b.png", "c.png"]
    for path in (folder / "state").iterdir():
        with Image.open(path) as picture:
            picture.load()


@pytest.mark.slow
def test_a_picture_ends_when_its_analysis_changes(control, folder):
    """A change of the analysis completes the picture, with the reason in the status."""
    control.call("record.start", source="tone", name="a")
    seq = newest(control, "spec/tone/0/dbfs/").header.seq
    newest(control, "spec/tone/0/dbfs/", seq + 3)
    control.call("set", changes={"sources.tone.analysis.hop": 500})
    (one,) = finished(control)
    assert one["state"] == "finished"
    assert one["error"] == "the analysis has changed, and a file holds one kind"
    assert (folder / "state" / "a.png").exists()


@pytest.mark.slow
def test_a_picture_ends_when_its_source_ends(folder):
    """The end of a source completes its picture without a stop."""
    with running(folder) as (_, control):
        control.call("record.start", source="tone", name="a")
        seq = newest(control, "spec/tone/0/dbfs/").header.seq
        newest(control, "spec/tone/0/dbfs/", seq + 3)
        control.call("source.remove", name="tone")
        assert finished(control)[0]["state"] == "finished"
        assert (folder / "state" / "a.png").exists()


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ({}, ConfigError, "source='': must name one of tone, low.noise"),
        ({"source": "x"}, NotFoundError, "source='x': does not exist"),
        (
            {"source": "tone", "product": "x"},
            NotFoundError,
            "product='x': tone has no such product",
        ),
        ({"source": "tone", "product": "thirds"}, ConfigError, "pictures show no bands"),
        ({"source": "tone", "name": "../a"}, ConfigError, "Expected `str` matching regex"),
        ({"source": "tone", "name": "/a"}, ConfigError, "Expected `str` matching regex"),
        ({"source": "tone", "name": ".a"}, ConfigError, "Expected `str` matching regex"),
        ({"source": "tone", "name": "a\n"}, ConfigError, "Expected `str` matching regex"),
        ({"source": "tone", "name": "there.png"}, StorageError, "there.png: already exists"),
        ({"source": "tone", "name": "link"}, StorageError, "link.png: already exists"),
        ({"source": "tone", "duration_s": 0}, ConfigError, "Expected `float` > 0"),
        ({"source": "tone", "duration_s": -1}, ConfigError, "Expected `float` > 0"),
        ({"source": "tone", "duration_s": 1e300}, ConfigError, "Expected `float` <= 31622400.0"),
        ({"source": "tone", "duration_s": 31622401}, ConfigError, "Expected `float` <= 31622400"),
    ],
)
def test_an_impossible_picture_is_refused_before_its_start(params, error, text, control, folder):
    """A picture outside the state folder, or over an existing file, is refused beforehand."""
    (folder / "state").mkdir()
    (folder / "state" / "there.png").write_text("mine")
    (folder / "state" / "link.png").symlink_to("/nowhere")
    with pytest.raises(error) as refused:
        control.call("record.start", **params)
    assert text in str(refused.value)
    assert control.call("status")["recordings"] == []
    assert (folder / "state" / "there.png").read_text() == "mine"


def test_the_number_of_concurrent_pictures_is_bounded(control):
    """Pictures beyond the limit are refused until one is stopped."""
    for k in range(recordings.ONE_SHOTS_MAX):
        control.call("record.start", source="tone", name=f"p{k}")
    with pytest.raises(BusyError, match="recordings: 4 run already; stop one first"):
        control.call("record.start", source="tone")
    with pytest.raises(NotFoundError, match=r"recording='x': does not run; there are: p0\.png"):
        control.call("record.stop", name="x")
    assert len(control.call("record.stop")) == recordings.ONE_SHOTS_MAX
    control.call("record.start", source="tone")


def test_pictures_have_so_much_memory_together(control, monkeypatch):
    """A picture that exceeds the memory limit of all pictures together is refused."""
    monkeypatch.setattr(recordings, "MEMORY_MAX_BYTES", 40 << 20)
    control.call("record.start", source="tone", name="a")  # 31 MB
    with pytest.raises(BusyError, match="recordings: 15 MB are needed, and 8 left by those that"):
        control.call("record.start", source="low.noise", name="b")
    control.call("record.stop", name="a")
    control.call("record.start", source="low.noise", name="b")


# ---- rights, and other matters


def test_a_peer_with_the_right_to_read_changes_nothing(folder, monkeypatch):
    """A peer with the right to read is denied every changing method with any parameters."""
    monkeypatch.setattr(Access, "user", lambda *_: Peer("ann", "read"))
    examples = {
        "set": {"changes": {"analysis.hop": 1}},
        "source.add": {"name": "b", "settings": {}},
        "source.remove": {"name": "tone"},
        "learn.start": {"name": "well"},
    }
    with running(folder) as (_, control):
        before = control.call("get"), control.call("events")
        for name, method in METHODS.items():
            if method.right == "control":
                with pytest.raises(DeniedError, match=f"{name}: needs the right 'control', which"):
                    control.call(name, **examples.get(name, {}))
        assert (control.call("get"), control.call("events")) == before


def test_a_second_daemon_at_the_same_control_socket_is_refused(folder):
    """A second daemon at the same control socket ends with an error and disturbs nothing."""
    with running(folder) as (_, control):
        with pytest.raises(BusyError, match="in use by another process"), running(folder):
            pass
        assert control.call("status")["sources"]


def test_without_control_endpoints_no_requests_are_taken(folder):
    """Without control endpoints, the daemon runs and takes no requests."""
    text = CONFIG.replace('endpoints = ["ipc://{folder}/c.ipc"]', "endpoints = []")
    path = folder / "c.toml"
    path.write_text(text.format(folder=folder))
    settings = config.load(str(path))
    daemon = ControlledDaemon(build_daemon(settings), settings, lambda: settings)
    daemon.start()
    assert daemon.endpoints == ()
    assert not daemon.finished
    daemon.stop()
    assert not list(folder.glob("*.ipc*"))


def test_a_socket_that_fails_ends_the_daemon_with_its_error(folder, monkeypatch):
    """If the control socket fails, the daemon ends with the error."""
    with running(folder) as (daemon, control):
        control.call("status")
        monkeypatch.setattr(
            "spectrod.daemon.control.control_server.read_request",
            lambda _: (_ for _ in ()).throw(OSError("oops")),
        )
        with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
            dealer.setsockopt(zmq.LINGER, 0)
            dealer.connect(daemon.endpoints[0])
            dealer.send(b"x")
            while not daemon.finished:
                assert daemon.progress.wait(20)
        with pytest.raises(
            SpectrodError, match=r"control failed: OSError\('oops'\); please report this"
        ):
            daemon.raise_failure()


# ---- the documentation


def test_every_method_and_code_is_documented():
    """``docs/control.md`` documents every method and error code for other clients."""
    text = (DOCS / "control.md").read_text()
    for name in (*METHODS, *get_args(ErrorCode)):
        assert f"`{name}`" in text
    for method in METHODS.values():
        for parameter in method.params.__struct_fields__:
            assert f"`{parameter}`" in text


@pytest.mark.slow
def test_the_client_in_the_documentation_works(folder):
    """The client printed in the documentation works in a separate process."""
    _, _, rest = (DOCS / "control.md").read_text().partition("```python\n")
    (folder / "ask.py").write_text(rest.partition("```")[0])
    with running(folder) as (daemon, control):
        newest(control, "spec/tone/0/dbfs/")
        question = ["latest", '{"topic": "spec/tone/0/dbfs/"}']
        done = subprocess.run(
            [sys.executable, "ask.py", daemon.endpoints[0], *question],
            capture_output=True,
            text=True,
            check=True,
        )
    reply, _, n_parts = done.stdout.rpartition("}")
    assert json.loads(reply + "}")["result"]["parts"] == [3]
    assert n_parts == " 3 more parts\n"
