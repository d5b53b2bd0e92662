"""A daemon with keys and its clients in this process: rights, and changes of keys."""

import asyncio
import io
import os
import re
import signal
import time

import pytest

from spectrod.apps.view.live import view
from spectrod.client import Control, aio, latest, subscribe
from spectrod.lib.errors import ConfigError, DeniedError, UnavailableError
from spectrod.wire.keys import make_keys

TIMEOUT_S = 60.0
RIGHTS = {"alice": "read", "bob": "control"}

pytestmark = pytest.mark.slow


class Site:
    """Folders of keys, and a daemon that requires them."""

    def __init__(self, folder, run_daemon):
        self.folder = folder
        self.clients = folder / "clients"
        self.clients.mkdir()
        for name in ("server", "alice", "bob", "eve"):
            public, _ = make_keys(folder / name, name, RIGHTS.get(name, "control"))
            if name in RIGHTS:
                (self.clients / public.name).write_text(public.read_text())
        self.config = folder / "spectrod.toml"
        self.write("tcp://127.0.0.1:*", "tcp://127.0.0.1:*")
        self.daemon = run_daemon(self.config)

    def write(self, endpoint, control):
        self.config.write_text(
            f"""
            source = {{ uri = "signal:sine,1000,-20", name = "tone" }}
            analysis = {{ win_length = 512, hop = 480 }}
            engine = {{ engine = "numpy" }}
            publish = {{ endpoints = ["{endpoint}"] }}
            control = {{ endpoints = ["{control}"] }}
            [security]
            server_key = "{self.folder}/server/server.key"
            client_keys = "{self.clients}"
            require = "always"
            """
        )

    def keys(self, name):
        return {
            "server_key": self.folder / "server" / "server.pub",
            "key_file": self.folder / name / f"{name}.key",
        }

    def subscribe(self, name, **options):
        endpoint = self.daemon.endpoint
        return subscribe(endpoint, timeout_s=TIMEOUT_S, **self.keys(name), **options)

    def control(self, name, **options):
        return Control(self.daemon.control, **self.keys(name), **options)


@pytest.fixture
def site(tmp_path, run_daemon):
    return Site(tmp_path, run_daemon)


def test_rights_of_keys(site):
    """A key with the right to read cannot control, and a client without a key can do neither."""
    for name in RIGHTS:
        with site.subscribe(name) as frames:
            assert next(frames).header.unit == "dBFS"
    with site.control("alice") as control:
        assert control.call("status")["daemon"]["security"]["unknown_key"] == 0
        with pytest.raises(DeniedError, match="pause: needs the right 'control', which alice does"):
            control.call("pause")
    with site.control("bob") as control:
        assert control.call("pause") == ["tone"]
        assert control.call("resume") == ["tone"]
        events = control.call("events")
        assert ("control.pause", "bob") in [(event["kind"], event["who"]) for event in events]


def test_refused_clients_are_counted_by_reason(site):
    """The log distinguishes an unknown key, a missing key and a wrong server key."""
    with site.subscribe("eve") as frames, pytest.raises(DeniedError, match="refuses the key; is"):
        next(frames)
    with site.control("eve") as control, pytest.raises(DeniedError, match="refuses the key"):
        control.call("status")
    with subscribe(site.daemon.endpoint) as frames, pytest.raises(DeniedError, match="give server"):
        next(frames)
    wrong = site.keys("alice") | {"server_key": site.folder / "eve" / "eve.pub"}
    with (
        subscribe(site.daemon.endpoint, timeout_s=0.3, **wrong) as frames,
        site.control("bob") as control,
    ):
        with pytest.raises(UnavailableError, match="nothing came within"):
            next(frames)
        refused = wait_for_refusals(control, unknown_key=2, wrong_server_key=1)
        kinds = {event["kind"] for event in control.call("events")}
    assert refused["no_key"] + refused["other"] >= 1
    assert {"security.unknown_key", "security.wrong_server_key"} <= kinds


def test_a_wrong_server_key_is_hinted_at(site, tmp_path):
    """A daemon drops a client with a wrong server key in silence; the client says what it may be.

    The view does after a second, and `subscribe` when its time is over. With the right key there is
    no hint.
    """
    wrong = site.keys("alice") | {"server_key": site.folder / "eve" / "eve.pub"}
    hint = "a daemon is there, but does not answer; is the server key its server.pub?"
    endpoint = site.daemon.endpoint
    with (
        subscribe(endpoint, timeout_s=2.0, **wrong) as frames,
        pytest.raises(UnavailableError, match=re.escape(f"{endpoint}: {hint}")),
    ):
        next(frames)
    shown, keys = tmp_path / "shown", {name: str(path) for name, path in wrong.items()}
    deadline_s = time.monotonic() + TIMEOUT_S

    def is_over():
        return hint in shown.read_text() or time.monotonic() > deadline_s

    with shown.open("w") as out:
        view(endpoint, out=out, keys=io.StringIO(), stop=is_over, **keys)
    first, *_, last = shown.read_text().splitlines()
    assert first == f"waiting for {endpoint}"
    assert last == f"waiting for {endpoint}: {hint}"
    with site.subscribe("alice") as frames:
        next(frames)
        assert frames.silence_hint() == ""


def wait_for_refusals(control, **least):
    """Wait until the daemon has counted refusals, which the peer may notice before; return them."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while True:
        counts = control.call("status")["daemon"]["security"]
        if all(counts[kind] >= count for kind, count in least.items()):
            return counts
        assert time.monotonic() < deadline_s, counts


def test_a_refused_client_connects_once_it_has_the_right(site):
    """A refused client reports each refusal, retries, and connects once it has the right."""
    with site.subscribe("eve") as frames, site.control("bob") as control:
        for _ in range(2):
            with pytest.raises(DeniedError):
                next(frames)
        (site.clients / "eve.pub").write_bytes((site.folder / "eve" / "eve.pub").read_bytes())
        assert "key eve: new, may control" in control.call("reload")
        deadline_s = time.monotonic() + TIMEOUT_S
        frame = None
        while frame is None:
            assert time.monotonic() < deadline_s
            try:
                frame = next(frames)
            except DeniedError:
                continue  # refused before the reload
        assert frame.source == "tone"


def test_a_refused_client_pauses_between_handshakes(site, monkeypatch):
    """A refused client pauses before the next handshake, which costs the daemon time."""
    monkeypatch.setattr("spectrod.client.connection._REFUSED_S", 3600.0)
    with site.subscribe("eve") as frames, site.control("bob") as control:
        with pytest.raises(DeniedError):
            next(frames)
        assert frames.receive(0.2) is None
        assert wait_for_refusals(control, unknown_key=1)["unknown_key"] == 1


def test_a_revoked_key_is_cut_off_while_others_miss_nothing(site):
    """A revocation by SIGHUP cuts one key, and others with replay get each frame once."""
    with (
        site.subscribe("alice") as alices,
        site.subscribe("bob", replay_from=site.daemon.control) as bobs,
    ):
        next(alices)
        first = next(bobs).header.seq
        (site.clients / "alice.pub").unlink()
        os.kill(site.daemon.process.pid, signal.SIGHUP)
        with pytest.raises(DeniedError, match="refuses the key"):
            list(alices)
        numbers = [next(bobs).header.seq for _ in range(200)]
        assert numbers == list(range(first + 1, first + 201))
        assert (bobs.missed, bobs.replay_failure) == (0, "")
    assert "key alice: revoked" in site.daemon.wait_for("reload: ")


def test_a_revocation_costs_nobody_else_a_frame(site):
    """A revocation costs other clients no frame, also without replay."""
    with site.subscribe("bob") as frames, site.control("bob") as control:
        # Row 0 is computed for nobody, and those after it once the subscription was noted.
        first = next(frame.header.seq for frame in frames if frame.header.seq)
        before = frames.missed
        (site.clients / "alice.pub").unlink()
        assert "key alice: revoked" in control.call("reload")
        received = [next(frames) for _ in range(100)]
        numbers = [frame.header.seq for frame in received]
        # Which frames, and whether the daemon says that it dropped them, tells why.
        assert numbers == list(range(first + 1, first + 101)), received[-1].header.dropped
        assert frames.missed == before
        assert not any(frame.restarted for frame in received)


def test_a_new_server_key_without_a_restart(site):
    """A reload of the server key cuts clients of the old one; an invalid one changes nothing."""
    with site.control("bob") as control:
        secret = site.folder / "server" / "server.key"
        secret.chmod(0o644)
        with pytest.raises(ConfigError, match="nobody but its owner may read a secret key"):
            control.call("reload")
        secret.chmod(0o600)
        old = site.keys("bob")
        old["server_key"] = str(old["server_key"].read_text()).split('public_key = "')[1][:40]
        for path in (site.folder / "server").iterdir():
            path.unlink()
        make_keys(site.folder / "server", "server", "read")
        assert any("the server's key is now" in line for line in control.call("reload"))
    with site.subscribe("alice") as frames:
        next(frames)
    with subscribe(site.daemon.endpoint, timeout_s=0.3, **old) as frames:
        assert frames.receive(0.3) is None


def test_event_loops_and_the_newest_frame(site):
    """The asynchronous subscription and ``latest`` work with keys."""

    async def read():
        endpoint, control = site.daemon.endpoint, site.daemon.control
        options = site.keys("alice") | {"timeout_s": TIMEOUT_S}
        async with aio.subscribe(endpoint, replay_from=control, **options) as frames:
            seen = [(await anext(frames)).header.seq for _ in range(20)]
        assert seen == list(range(seen[0], seen[0] + 20))
        with latest(control, "spec/tone/0/dbfs/", **options) as newest:
            first = await anext(newest)
            second = await anext(newest)
            assert second.header.seq == first.header.seq + 1 + second.missed
        async with aio.subscribe(endpoint, **site.keys("eve")) as frames:
            with pytest.raises(DeniedError):
                await anext(frames)

    asyncio.run(read())
    with latest(
        site.daemon.control, "spec/tone/0/dbfs/", timeout_s=TIMEOUT_S, **site.keys("alice")
    ) as newest:
        numbers = [next(newest).header.seq for _ in range(5)]
        assert numbers == sorted(set(numbers))
        assert newest.missed == numbers[-1] - numbers[0] - 4


@pytest.mark.parametrize("missing", ["server_key", "key_file"])
def test_half_of_the_keys_is_an_error(missing, tmp_path):
    """One of two required keys is an error that names the missing one."""
    given = {"server_key": "x", "key_file": tmp_path / "x"} | {missing: None}
    with pytest.raises(ConfigError, match=f"{missing}: must be given too"):
        subscribe("tcp://127.0.0.1:5556", **given)
