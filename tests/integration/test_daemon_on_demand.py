"""A daemon that computes on demand and changes at run time, over real sockets."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from msgspec.structs import replace

from spectrod import client
from spectrod.analysis import warm_up
from spectrod.config.config import (
    AnalysisConfig,
    Config,
    EngineConfig,
    ProductConfig,
    PublishConfig,
    SourceTable,
)
from spectrod.daemon import demand as demand_module
from spectrod.daemon import source_runner as runner_module
from spectrod.daemon.daemon import build_daemon
from spectrod.daemon.publisher.upstream import Upstream
from spectrod.lib.errors import ConfigError, InputError, UnavailableError

TIMEOUT_S = 60.0
TONE = SourceTable(uri="signal:sine,1000,-20", name="tone")
NOISE = SourceTable(
    uri="signal:white,-20", name="noise", analysis=AnalysisConfig(win_length=512, hop=255)
)
LEVELS = ProductConfig("levels", bands="octave", averaging="mean", rate_hz=20.0)
FINE = ProductConfig("fine", sources=("tone",), win_length=8191, nfft=8191)


def settings(*sources, products=(), on_demand=True):
    publish = PublishConfig(endpoints=("tcp://127.0.0.1:*",), on_demand=on_demand)
    return Config(sources=sources, products=products, publish=publish, engine=EngineConfig("numpy"))


def own_threads():
    """Count the threads but those of the pool, which has as many as were busy at once."""
    return sum(not one.name.startswith("spectrod-jobs-") for one in threading.enumerate())


@pytest.fixture
def start(count_threads):
    """Start daemons, and check after the test that they leave no resources."""
    threads = count_threads()
    started = []

    def start(*sources, **options):
        started.append(build_daemon(settings(*sources, **options)))
        started[-1].start()
        return started[-1]

    yield start
    for running in started:
        running.stop()
    assert count_threads() == threads


def subscribe(running, prefix):
    return client.subscribe(running.publisher.endpoints[0], prefix, timeout_s=TIMEOUT_S)


def wait_until(running, condition):
    """Wait on the daemon's own wake-ups for a condition."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        running.progress.wait(0.05)  # counters without a wake-up are polled
        assert time.monotonic() < deadline_s, running.stats()


def computed(running):
    return {stats.name: set(stats.computed) for stats in running.stats()}


def idle(running):
    """Wait until nothing is computed and all messages are sent."""
    wait_until(running, lambda: not any(computed(running).values()))
    wait_until(running, lambda: all(s.messages >= s.rows for s in running.stats()))


def rows_sent(running):
    """Return the number of the newest message of each source and product, all of one channel."""
    history = running.publisher.history
    return {
        (topic.split("/")[1], topic.split("/")[3]): history.newest(topic).seq
        for topic in history.topics()
    }


def kinds(running):
    return [(event.kind, event.source) for event in running.events.since()]


def test_without_subscribers_each_product_is_computed_once(start):
    """Without subscribers each product is computed and sent once, and then none."""
    running = start(TONE, NOISE, products=(LEVELS, FINE))
    idle(running)
    stats = running.stats()
    assert [one.state for one in stats] == ["running"] * 2
    assert [one.products for one in stats] == [("dbfs", "levels", "fine"), ("dbfs", "levels")]
    wait_until(running, lambda: all(one.messages >= len(one.products) for one in running.stats()))
    assert sorted(running.publisher.history.topics()) == [
        "bands/noise/0/levels/",
        "bands/tone/0/levels/",
        "spec/noise/0/dbfs/",
        "spec/tone/0/dbfs/",
        "spec/tone/0/fine/",
    ]
    before = [one.rows for one in stats]
    analysed = [one.analysed for one in stats]
    wait_until(
        running,
        lambda: all(
            now.analysed > n + 9600 for now, n in zip(running.stats(), analysed, strict=True)
        ),
    )
    assert [one.rows for one in running.stats()] == before


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("spec/tone/0/dbfs/", {"tone": {"dbfs"}, "noise": set()}),
        ("bands/", {"tone": {"levels"}, "noise": {"levels"}}),
        ("spec/tone/", {"tone": {"dbfs", "fine"}, "noise": set()}),
        ("spec/t", {"tone": {"dbfs", "fine"}, "noise": set()}),
        ("", {"tone": {"dbfs", "fine", "levels"}, "noise": {"dbfs", "levels"}}),
    ],
)
def test_products_are_computed_while_they_have_subscribers(start, prefix, expected):
    """A product of a source is computed while a subscribed prefix matches it."""
    running = start(TONE, NOISE, products=(LEVELS, FINE))
    idle(running)
    before = rows_sent(running)
    with subscribe(running, prefix):
        wait_until(running, lambda: computed(running) == expected)
        wait_until(
            running,
            lambda: all(
                rows_sent(running)[source, product] > before[source, product] + 2
                for source, products in expected.items()
                for product in products
            ),
        )
    idle(running)


def test_numbers_count_skipped_rows_and_no_message_is_missed(start):
    """Rows without demand are counted, so only lost messages leave holes."""
    running = start(NOISE)
    rows = []
    for _ in range(3):
        idle(running)
        with subscribe(running, "spec/") as frames:
            rows += [next(frames).header for _ in range(3)]
            assert frames.missed == 0
    first = rows[0]
    for header in rows:
        assert header.sample_index == 255 * header.seq
        assert (header.gap_samples, header.epoch) == (0, first.epoch)
    assert [header.seq for header in rows] == sorted({header.seq for header in rows})


def test_the_first_row_on_demand_comes_within_two_rows(start):
    """The first row on demand comes within two rows, in samples of the ring."""
    running = start(NOISE)
    idle(running)
    runner = running.runners[0]
    reported_at = []

    def watched(products):
        if products:
            reported_at.append(runner.pipeline.ring.written)
        runner.demand.want(products)

    running.publisher.sources[0]._on_demand = watched
    with subscribe(running, "spec/noise/") as frames:
        header = next(frames).header
    complete = header.sample_index + header.win_length
    # It may include samples that gathered in the ring without demand.
    assert reported_at[0] - 0.2 * 48_000 < complete <= reported_at[0] + 2 * 255


def test_all_is_computed_where_that_is_asked_for(start):
    """The key for computing all products can be changed at run time."""
    running = start(TONE, products=(LEVELS,), on_demand=False)
    wait_until(running, lambda: running.stats()[0].rows > 10)
    assert computed(running) == {"tone": {"dbfs", "levels"}}
    running.reconfigure(settings(TONE, products=(LEVELS,)))
    idle(running)
    running.reconfigure(settings(TONE, products=(LEVELS,), on_demand=False))
    wait_until(running, lambda: computed(running) == {"tone": {"dbfs", "levels"}})


def test_a_subscriber_gets_no_rows_from_before_its_subscription_was_noted(start, monkeypatch):
    """Rows of a lease, whose end leaves a hole, are no loss of one who subscribes meanwhile."""
    running = start(NOISE)
    (runner,) = running.runners
    idle(running)
    noted, take = threading.Event(), Upstream.take

    def take_late(upstream, socket):
        return take(upstream, socket) if noted.is_set() else iter(())

    monkeypatch.setattr(Upstream, "take", take_late)
    (before,) = rows_sent(running).values()
    with subscribe(running, "spec/") as frames:
        runner.lease("dbfs", 0.5)
        frames.receive(0.5)  # libzmq knows the subscription before the publisher does
        idle(running)
        (leased,) = rows_sent(running).values()
        assert leased > before + 10
        (analysed,) = (one.analysed for one in running.stats())
        wait_until(running, lambda: running.stats()[0].analysed > analysed + 9600)
        noted.set()
        rows = [next(frames).header.seq for _ in range(20)]
        assert rows == list(range(rows[0], rows[0] + 20))
        assert rows[0] > leased
        assert frames.missed == 0


def test_a_lease_is_demand_until_it_ends(start, monkeypatch):
    """Repeated requests keep a product computed by a lease."""
    now_s = 0.0
    monkeypatch.setattr(demand_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    running = start(TONE, products=(LEVELS,))
    idle(running)
    runner = running.runner("tone")
    runner.lease("levels", 10.0)
    wait_until(running, lambda: computed(running) == {"tone": {"levels"}})
    now_s = 10.1
    idle(running)
    with pytest.raises(
        ConfigError, match=r"^product='fine': .* no such product; there are: dbfs, levels$"
    ):
        runner.lease("fine", 1.0)
    with pytest.raises(ConfigError, match=r"^source='mic': must be one of tone$"):
        running.runner("mic")


def test_a_pause_is_sent_to_subscribers(start):
    """During a pause only heartbeats come, and subscribers are informed of its state."""
    running = start(NOISE)
    with subscribe(running, "spec/") as frames:
        before = next(frames).header
        running.runner("noise").pause()
        while getattr(frames.heartbeats.get("noise"), "state", "") != "paused":
            frames.receive(0.1)
        idle(running)
        running.runner("noise").resume()
        wait_until(running, lambda: computed(running) == {"noise": {"dbfs"}})
        while frames.heartbeats["noise"].state != "running":
            after = next(frames).header
        # Rows before the pause, or skipped because of it, are all accounted for.
        assert frames.missed > 0
    assert after.sample_index - before.sample_index == 255 * (after.seq - before.seq)


# ---- added and removed sources and products


def test_an_added_source_reaches_earlier_subscribers(start):
    """An added source reaches earlier subscribers, others have no gap, and its removal is sent."""
    running = start(TONE)
    with subscribe(running, "spec/") as frames:
        assert next(frames).source == "tone"
        running.reconfigure(settings(TONE, NOISE))
        assert [runner.name for runner in running.runners] == ["tone", "noise"]
        while (noise := next(frames)).source != "noise":
            pass
        running.reconfigure(settings(TONE))
        while frames.heartbeats.get("noise") is None or (
            frames.heartbeats["noise"].state != "stopped"
        ):
            next(frames)
        running.reconfigure(settings(NOISE, TONE))
        # Numbers of the name continue, so that they stay unique within an epoch.
        while (again := next(frames)).source != "noise" or again.header.seq <= noise.header.seq:
            pass
        assert frames.missed == 0
    assert running.stats()[1].gaps == 0
    assert running.stats()[1].name == "tone"


def test_a_source_with_another_input_restarts(start, monkeypatch):
    """A source whose input changes restarts, and the daemon never counts as finished."""
    running = start(TONE)
    stop = runner_module.SourceRunner.stop

    def watched(runner, *arguments):
        stop(runner, *arguments)
        assert not running.finished

    monkeypatch.setattr(runner_module.SourceRunner, "stop", watched)
    with subscribe(running, "spec/tone/") as frames:
        next(frames)
        running.reconfigure(settings(replace(TONE, channels=2, channel_names=("l", "r"))))
        assert {next(f for f in frames if f.channel == name).channel for name in "lr"} == {"l", "r"}
    assert running.stats()[0].channels == 2
    monkeypatch.undo()


def test_a_failed_replacement_is_reported_and_leaves_others_running(start, monkeypatch):
    """A replacement that fails is reported by heartbeat, counters and events, others continue."""
    running = start(TONE, NOISE)
    idle(running)
    threads = own_threads()
    opened = runner_module.open_source

    def open_broken(table):
        source = opened(table)
        if table.channels == 2:
            monkeypatch.setattr(source, "start", broken)
        return source

    def broken(_ring, _on_change):
        raise UnavailableError("soundcard: taken by somebody else")

    monkeypatch.setattr(runner_module, "open_source", open_broken)
    with subscribe(running, "spec/") as frames:
        next(frames)
        running.reconfigure(settings(replace(TONE, channels=2), NOISE))
        while frames.heartbeats.get("tone") is None or frames.heartbeats["tone"].state != "failed":
            next(frames)
    assert [stats.state for stats in running.stats()] == ["failed", "running"]
    assert [(e.source, e.text) for e in running.events.since() if e.kind == "source.failed"] == [
        ("tone", "soundcard: taken by somebody else")
    ]
    assert own_threads() <= threads
    running.reconfigure(settings(TONE, NOISE))
    assert running.stats()[0].state in ("starting", "running")


def test_a_change_that_is_prepared_while_the_daemon_stops_is_refused(start, monkeypatch):
    """A change prepared during a stop is refused, its resources are released, nothing starts."""
    running = start(TONE)
    prepare = running._prepare

    def stopped_meanwhile(config, undo):
        change = prepare(config, undo)
        running.stop()
        return change

    monkeypatch.setattr(running, "_prepare", stopped_meanwhile)
    with pytest.raises(UnavailableError, match="the daemon stops: nothing has changed"):
        running.reconfigure(settings(TONE, NOISE))
    assert [(stats.name, stats.state) for stats in running.stats()] == [("tone", "stopped")]


def test_a_product_that_is_added_is_computed_on_demand(start):
    """An added product is computed on demand, a removed one no more, and the main one continues."""
    running = start(TONE)
    with subscribe(running, "") as frames:
        next(frames)
        running.reconfigure(settings(TONE, products=(FINE,)))
        frame = next(f for f in frames if f.topic == "spec/tone/0/fine/")
        assert frame.values.shape == (4096,)
        assert abs(frame.f[np.argmax(frame.values)] - 1000.0) <= 48_000 / 8191
        running.reconfigure(settings(TONE))
        wait_until(running, lambda: running.stats()[0].products == ("dbfs",))
        assert next(f for f in frames if f.topic == "spec/tone/0/dbfs/").header.nfft == 4096
        assert frames.missed == 0


@pytest.mark.slow
@pytest.mark.extended
def test_programs_for_a_change_are_compiled_before_it(opencl_device, tmp_path, monkeypatch):
    """Programs for a change are compiled before it, so new rows add none to the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(warm_up, "WAIT_LIMIT_S", 110.0)  # a busy machine may take longer
    before = replace(
        settings(TONE, on_demand=False), engine=EngineConfig("opencl", opencl_device.label)
    )
    after = replace(before, products=(FINE,))
    running = build_daemon(before)
    runner = running.runners[0]
    try:
        running.start()
        first = sorted(tmp_path.rglob("*"))
        stream = runner.prepare(after.all_sources[0])
        kept = sorted(tmp_path.rglob("*"))
        assert len(kept) > len(first)
        runner.change_to(after.all_sources[0], stream)
        wait_until(running, lambda: ("tone", "fine") in rows_sent(running))
    finally:
        running.stop()
    assert sorted(tmp_path.rglob("*")) == kept


@pytest.mark.slow
@pytest.mark.opencl
def test_with_an_empty_cache_numpy_computes_until_the_kernels_are_compiled(tmp_path, monkeypatch):
    """A daemon sends at once and later moves to the device, without a gap between two messages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    analysis = AnalysisConfig(win_length=64, hop=6000)
    running = build_daemon(
        replace(settings(replace(TONE, analysis=analysis)), engine=EngineConfig("auto", ""))
    )
    try:
        running.start()
        with subscribe(running, "spec/") as frames:
            headers = [next(frames).header]
            while headers[-1].engine == "numpy":
                headers.append(next(frames).header)
            headers += [next(frames).header for _ in range(3)]
            assert frames.missed == 0
        assert headers[0].engine == "numpy"
        assert headers[-1].engine.startswith("opencl:")
        assert not any(header.gap_samples for header in headers)
        steps = np.diff([header.sample_index for header in headers[1:]])
        assert steps.tolist() == [6000] * len(steps)
        assert running.stats()[0].engine == headers[-1].engine
        assert running.stats()[0].engine_failures == 0
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("sources", "products", "error", "message"),
    [
        ((TONE, replace(NOISE, uri="/absent.wav")), (), InputError, r"absent\.wav: No such file"),
        (
            (TONE, NOISE, replace(NOISE)),
            (),
            ConfigError,
            "source name='noise': another source has it",
        ),
        ((TONE, NOISE), (ProductConfig("x", hop=0),), ConfigError, r"products\.x: hop=0: must be"),
        (
            (TONE, NOISE),
            (ProductConfig("dbfs"),),
            ConfigError,
            r"products\.dbfs: is the name of the main analysis; must be another name",
        ),
    ],
)
def test_a_configuration_that_is_refused_changes_nothing(start, sources, products, error, message):
    """A refused configuration changes neither sources nor products and leaves no resources."""
    running = start(TONE)
    idle(running)
    runners, threads = running.runners, own_threads()
    with pytest.raises(error, match=message):
        running.reconfigure(settings(*sources, products=products, on_demand=False))
    assert running.runners == runners
    assert own_threads() == threads
    assert running.stats()[0].products == ("dbfs",)
    assert computed(running) == {"tone": set()}


# ---- events


def test_changes_of_sources_are_events_and_log_lines(start, tmp_path, monkeypatch):
    """Ends, failures and waits of sources have an event as well as a log line."""
    path = tmp_path / "short.wav"
    soundfile.write(path, np.zeros(4800), 48_000)
    absent = SourceTable(uri="soundcard:serial=123", name="mic")

    def gone(*_):
        raise UnavailableError("soundcard: no audio input on this machine")

    opened = runner_module.open_source
    monkeypatch.setattr(
        runner_module,
        "open_source",
        lambda t: gone() if t.uri.startswith("soundcard") else opened(t),
    )
    running = start(TONE, SourceTable(uri=str(path), name="short"), absent)
    for kind in (("source.ended", "short"), ("source.waiting", "mic")):
        wait_until(running, lambda kind=kind: kind in kinds(running))
    waiting = [event for event in running.events.since() if event.kind == "source.waiting"]
    assert [(event.source, event.text) for event in waiting] == [
        ("mic", "soundcard: no audio input on this machine")
    ]
