"""Which of several daemons ``spectrod ctl`` means."""

import pytest

from spectrod.apps.ctl import command as ctl
from spectrod.client import Control
from spectrod.lib.errors import ConfigError, DeniedError, UnavailableError

OWN, ROOF, POND = (
    f"ipc:///run/{folder}/control-spectrum.ipc"
    for folder in ("spectrod", "spectrod-roof", "spectrod-pond")
)


class Answering(Control):
    """A daemon with two sources."""

    def __init__(self, *_, **__):
        pass

    def call(self, _method):
        return {"sources": [{"name": "tone"}, {"name": "pond"}]}

    def close(self):
        pass


@pytest.fixture
def machine(monkeypatch):
    """Return a function that sets which control sockets there are."""

    def be(*answering, denied=()):
        monkeypatch.setattr(ctl, "find_endpoints", lambda: (list(answering), list(denied)))
        monkeypatch.setattr(ctl, "Control", Answering)

    return be


def test_the_systems_daemon_is_meant_beside_instances(machine):
    """Without an option the main service is meant, an instance by its name."""
    machine(OWN, ROOF, POND)
    assert ctl.find(None) == OWN
    assert ctl.find(None, "roof") == ROOF


def test_instances_alone_are_named_with_their_sources(machine):
    """Where nothing tells which is meant, the error has the option and the sources of each."""
    machine(ROOF, POND)
    rule = r"^several daemons run; name one with -i roof \(sources tone, pond\), -i pond \(sources "
    with pytest.raises(ConfigError, match=rule):
        ctl.find(None)


def test_an_instance_that_does_not_run_is_an_error_with_those_that_do(machine):
    """An unknown instance, one that denies the user, and two ways to name one are errors."""
    machine(OWN, ROOF)
    with pytest.raises(
        UnavailableError, match=r"^instance x: no such daemon runs; there are: roof$"
    ):
        ctl.find(None, "x")
    machine(OWN, denied=["ipc:///run/spectrod-pond/control-*.ipc"])
    with pytest.raises(DeniedError, match=r"^instance pond: permission denied; for its user"):
        ctl.find(None, "pond")
    with pytest.raises(
        ConfigError, match=r"^--endpoint ipc://x: must not be beside --instance roof"
    ):
        ctl.find("ipc://x", "roof")


def test_a_daemon_that_does_not_answer_is_named_so(tmp_path):
    """The list of daemons does not wait for one that hangs."""
    endpoint = f"ipc://{tmp_path}/x.ipc"
    assert ctl._sources_of(endpoint, timeout_s=0.05) == "does not answer"
