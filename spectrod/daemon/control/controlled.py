"""A daemon together with its control socket."""

from collections.abc import Callable, Sequence

from spectrod.config.config import Config
from spectrod.daemon.change_journal import Journal
from spectrod.daemon.control.changed_settings import LiveSettings
from spectrod.daemon.control.control_server import ControlServer
from spectrod.daemon.control.exposition import Exposition
from spectrod.daemon.control.masks import Masks
from spectrod.daemon.control.methods import AboutControl, Methods
from spectrod.daemon.daemon import Daemon
from spectrod.daemon.monitoring.health import recorder_troubles
from spectrod.daemon.monitoring.http_server import HttpServer
from spectrod.lib.errors import SpectrodError
from spectrod.lib.stats import Stats
from spectrod.lib.wakeup import Wakeup
from spectrod.recording.state_folder import state_folder
from spectrod.wire.endpoint_discovery import own_endpoint

_AUTO = "auto"


class ControlledDaemon:
    """A daemon that accepts requests, for ``spectrod.service.serve``.

    ``start`` starts the daemon first and then accepts requests; ``stop`` does the reverse.

    Parameters
    ----------
    daemon : Daemon
        The daemon, not started.
    settings : Config
        Its configuration.
    load : callable
        Reads the configuration again.

    Attributes
    ----------
    settings : LiveSettings
        Settings in force; SIGHUP reloads them.
    http : HttpServer or None
        Serves metrics and health; None if it is off.
    """

    def __init__(self, daemon: Daemon, settings: Config, load: Callable[[], Config]) -> None:
        self._daemon, self._control = daemon, settings.control
        journal = Journal(daemon.events)
        access = daemon.access
        self.settings = LiveSettings(
            daemon, settings, load, journal, access.reload, access.check_keys
        )
        state = state_folder(settings.control.state_folder)
        self._masks = Masks(state, journal, lambda: daemon.runners)
        exposition = Exposition(daemon, self.settings, self._about_control)
        self._methods = Methods(
            daemon,
            self.settings,
            self._masks,
            journal,
            self._about_control,
            exposition.metrics,
        )
        self._server: ControlServer | None = None
        self.http: HttpServer | None = None
        http = settings.http
        if http.listen:
            self.http = HttpServer(
                http.listen, exposition.handle, insecure=http.insecure, hosts=http.hosts
            )

    def start(self) -> None:
        """Start the daemon, then accept requests; raises the SpectrodError of a failed part."""
        if self.http is not None:
            self.http.start()  # a probe may ask for readiness from here on
        self._daemon.start()
        requested = [self._resolved(text) for text in self._control.endpoints]
        if not requested:
            return
        server = ControlServer(
            requested,
            self._methods,
            self._daemon.access,
            requests_per_s=self._control.requests_per_s,
            progress=self._daemon.progress,
        )
        server.start()
        self._server = server

    def stop(self) -> None:
        """Stop accepting requests, then the daemon; idempotent."""
        if self._server is not None:
            self._server.stop()
        self._masks.close()
        self._daemon.stop()
        if self.http is not None:
            self.http.stop()

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Endpoints that accept requests, once started."""
        return self._server.endpoints if self._server is not None else ()

    @property
    def progress(self) -> Wakeup:
        """Wake-up of the daemon; also set when the control socket fails."""
        return self._daemon.progress

    @property
    def finished(self) -> bool:
        """True if the daemon has finished or the control socket has failed."""
        return self._daemon.finished or self._failure is not None

    def stats(self) -> Sequence[Stats]:
        """Return the counters of each source."""
        return self._daemon.stats()

    def troubles(self) -> Sequence[str]:
        """Return the configured recordings that cannot be written, with the reason."""
        return recorder_troubles(self._daemon.recordings.status()["recorders"])

    def raise_failure(self) -> None:
        """Raise the failure that ended the daemon or the control socket."""
        self._daemon.raise_failure()
        if self._failure:
            raise self._failure

    @property
    def _failure(self) -> SpectrodError | None:
        return self._server.failure if self._server is not None else None

    def _about_control(self) -> AboutControl:
        return AboutControl(self.endpoints, dict(self._server.counts) if self._server else {})

    def _resolved(self, endpoint: str) -> str:
        return own_endpoint(self._daemon.publisher.endpoints[0]) if endpoint == _AUTO else endpoint
