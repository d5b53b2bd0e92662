"""A daemon of ``spectrod.service`` alone, which the signal tests start and kill.

Usage: fake_daemon.py [--hang] [--refuse]

It "publishes" at once, logs to standard error, and prints ``stopped`` when it is stopped; with
``--hang`` that stop never returns, with ``--refuse`` a reload is refused.
"""

import sys
import threading

from spectrod.daemon.service import Notifier, caught_signals, configure_logging, serve
from spectrod.lib.errors import ConfigError
from spectrod.lib.stats import Stats
from spectrod.lib.wakeup import Wakeup


def make_stats(count=0, state="running", name="mic"):
    """Make the counters of a source that has done ``count`` of everything and lost nothing."""
    return Stats(
        state=state,
        source="fake",
        engine="numpy",
        fs=48000.0,
        channels=1,
        samples=count,
        rows=count,
        messages=count,
        name=name,
        heartbeats=count,
        analysed=2 * count,
        products=("dbfs",),
        computed=("dbfs",),
        row_due_samples=1,
        subscribers=1,
    )


class FakeDaemon:
    """A daemon whose counters the test sets; ``script`` yields them, the last one repeatedly.

    Each item is one source's, or a list of several sources'.
    """

    def __init__(self, script=(), *, failure=None, hang=False, troubles=()):
        self.progress = Wakeup()
        self.progress.set()
        self.finished = False
        self.failure = failure
        self.stops = 0
        self._hang, self._troubles = hang, troubles
        self._script = list(script) or [make_stats(1)]

    def stats(self):
        stats = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return stats if isinstance(stats, list) else [stats]

    def troubles(self):
        return self._troubles

    def raise_failure(self):
        if self.failure:
            raise self.failure

    def stop(self):
        self.stops += 1
        if self._hang:
            threading.Event().wait()


def _refuse():
    raise ConfigError("hop=0: must be at least 1 sample")


def main(arguments):
    configure_logging()
    daemon = FakeDaemon(hang="--hang" in arguments)
    reload = _refuse if "--refuse" in arguments else lambda: ["log.level: applied"]
    with caught_signals() as signals:
        code = serve(daemon, signals=signals, reload=reload, notifier=Notifier())
    sys.stdout.write(f"stopped {daemon.stops}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
