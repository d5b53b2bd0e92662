"""Metrics and health of a running daemon, for the control socket and over HTTP."""

import platform
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

import spectrod
from spectrod.daemon.control.changed_settings import LiveSettings
from spectrod.daemon.control.methods import AboutControl
from spectrod.daemon.daemon import Daemon
from spectrod.daemon.monitoring.families import CONTENT_TYPES, TextFormat, list_of, text_of
from spectrod.daemon.monitoring.health import recorder_troubles, unready_reasons
from spectrod.daemon.monitoring.http_request import HttpRequest, HttpResponse, text_response
from spectrod.daemon.monitoring.metrics import families_of
from spectrod.daemon.monitoring.newest_levels import product_levels
from spectrod.daemon.monitoring.process_usage import process_use
from spectrod.daemon.monitoring.snapshot import Snapshot
from spectrod.daemon.source_runner import SourceRunner
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.stats import Stats
from spectrod.wire.requests import MetricsFormat

CACHE_S: Final = 0.5
"""Age up to which an exposition is repeated: requests cost the daemon two a second at most [s]."""
_OPEN_METRICS: Final = "application/openmetrics-text"
_JSON: Final = "application/json"


class Exposition:
    """Reads a daemon's counters on request; the parts of the daemon never wait for it.

    Parameters
    ----------
    daemon : Daemon
    settings : LiveSettings
    about_control : callable
        Returns the state of the control socket.
    """

    def __init__(
        self,
        daemon: Daemon,
        settings: LiveSettings,
        about_control: Callable[[], AboutControl],
    ) -> None:
        self._daemon, self._settings = daemon, settings
        self._about_control = about_control
        self._start_utc_s = time.time()
        self._lock = threading.Lock()
        self._cached: dict[MetricsFormat, tuple[float, Any]] = {}

    def metrics(self, metrics_format: MetricsFormat) -> Any:
        """Return all metrics as text or list, at most ``CACHE_S`` old; any thread."""
        with self._lock:
            made_s, found = self._cached.get(metrics_format, (-CACHE_S, None))
            if time.monotonic() - made_s >= CACHE_S:
                families = families_of(self.snapshot())
                found = (
                    list_of(families)
                    if metrics_format == "list"
                    else text_of(families, metrics_format)
                )
                self._cached[metrics_format] = (time.monotonic(), found)
        return found

    def snapshot(self) -> Snapshot:
        """Read all counters; any thread."""
        daemon = self._daemon
        publisher, access, runners = daemon.publisher, daemon.access, daemon.runners
        loaded = self._settings.last_load
        return Snapshot(
            version=spectrod.__version__,
            python=platform.python_version(),
            start_utc_s=self._start_utc_s,
            process=process_use(),
            stats=daemon.stats(),
            channels={runner.name: _channels(runner) for runner in runners},
            latencies={runner.name: runner.latencies() for runner in runners},
            levels=product_levels(publisher.history),
            recorders=daemon.recordings.status()["recorders"],
            triggers=daemon.trigger_status(),
            requested_recordings=daemon.recordings.n_one_shots,
            subscriptions=publisher.subscribers,
            unsendable=publisher.unsendable,
            history_bytes=publisher.history.size_bytes,
            client_keys=access.n_client_keys,
            refused={str(kind): n for kind, n in access.refusals.counts.items()},
            requests=self._about_control().counts,
            connections={str(name): of for name, of in access.connections.status().items()},
            is_reloaded=loaded.is_ok,
            configured_utc_s=loaded.ok_utc_ns / NS_PER_S,
        )

    # ---- HTTP

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Reply to a request of the HTTP server."""
        if request.path == "/metrics":
            wants_open = request.accepts(_OPEN_METRICS)
            text_format: TextFormat = "openmetrics" if wants_open else "prometheus"
            body = self.metrics(text_format).encode()
            return HttpResponse(HTTPStatus.OK, CONTENT_TYPES[text_format], body)
        if request.path == "/healthz":
            return _health(request, self._faults())
        if request.path == "/readyz":
            troubles = recorder_troubles(self._daemon.recordings.status()["recorders"])
            return _health(request, [*self._faults(), *unready_reasons(self._stats(), troubles)])
        return text_response(HTTPStatus.NOT_FOUND, "there are /metrics, /healthz and /readyz")

    def _stats(self) -> Sequence[Stats]:
        return self._daemon.stats()

    def _faults(self) -> list[str]:
        """Return why the daemon is about to end."""
        return ["the daemon has ended or a part of it has failed"] if self._daemon.finished else []


def _health(request: HttpRequest, reasons: Sequence[str]) -> HttpResponse:
    status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    if request.accepts(_JSON):
        body = msgspec.json.encode({"ok": not reasons, "reasons": reasons})
        return HttpResponse(status, _JSON, body + b"\n")
    return text_response(status, "\n".join(reasons) or "ok")


def _channels(runner: SourceRunner) -> Sequence[str]:
    """Return the names of the channels of the samples: their numbers, if the names are not theirs.

    I/Q samples have two channels and one name.
    """
    n = runner.stats().channels
    names = runner.table.channel_names
    return names if len(names) == n else [str(k) for k in range(n)]
