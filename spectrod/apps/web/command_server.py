"""The server of the page: made from its settings, run until a signal."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spectrod.apps.web.app import Services, make_app
from spectrod.apps.web.archive.archive_pages import ArchivePages
from spectrod.apps.web.archive.archives import Archives, open_archives
from spectrod.apps.web.archive.events_route import events_route
from spectrod.apps.web.archive.stored_events import StoredEvents
from spectrod.apps.web.control_requests import ControlRelay
from spectrod.apps.web.gate import Gate
from spectrod.apps.web.guard import Guard, GuardLimits
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.routes import history_routes
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.hub import Hub
from spectrod.apps.web.invitation import is_local, page_link, qr_code
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.listen import load_certificate, open_listener, parse_address
from spectrod.apps.web.page_connection import SPARE_CONNECTIONS
from spectrod.apps.web.page_files import read_page
from spectrod.apps.web.page_origin import server_names
from spectrod.apps.web.recorded_topics import RecordedTopics
from spectrod.apps.web.replay import ReplayClient, ReplayedRows
from spectrod.apps.web.server import Server
from spectrod.apps.web.sound.sound_routes import sound_routes
from spectrod.apps.web.token import new_token, read_token
from spectrod.apps.web.topic_past import TopicPasts
from spectrod.daemon.service import Notifier, Signals
from spectrod.lib.allocator import give_back_memory
from spectrod.lib.errors import ConfigError
from spectrod.wire.endpoint import Endpoint

_EXIT_CODES: Final = {signal.SIGTERM: 0, signal.SIGINT: 130}
_STDIN_FD = 0
_TICK_S = 1.0

_log = logging.getLogger("spectrod.apps.web")


@dataclass(frozen=True, slots=True)
class WebSettings:
    """What the command line says; ``spectrod web --help`` describes each.

    Attributes
    ----------
    endpoints : tuple of str
        Those of daemons; empty with archives.
    listen : str
    allow_hosts : tuple of str
    certificate : (Path, Path) or None
        Certificate and key.
    token_file : Path or None
    has_no_token : bool
    root_path : str
        Empty, or with a slash in front and none at the end.
    can_control : bool
    has_sound : bool
    clients : int
    recordings : tuple of Path
    archives : tuple of str
        Paths that are shown without a daemon.
    events : tuple of str
        Files of events, as ``FILE`` or ``SOURCE=FILE``.
    server_key, key_file : str or None
    inherited : socket.socket or None
        Listening socket of the process that started this one. The server ends with its standard
        input then, and announces nothing: the other process does.
    """

    endpoints: tuple[str, ...]
    listen: str
    allow_hosts: tuple[str, ...] = ()
    certificate: tuple[Path, Path] | None = None
    token_file: Path | None = None
    has_no_token: bool = False
    root_path: str = ""
    can_control: bool = False
    has_sound: bool = False
    clients: int = 32
    recordings: tuple[Path, ...] = ()
    archives: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    server_key: str | None = None
    key_file: str | None = None
    inherited: socket.socket | None = None


def serve_page(settings: WebSettings, signals: Signals) -> int:
    """Serve the page until a signal; return the exit code.

    Raises
    ------
    SpectrodError
        If a setting is wrong, or the address cannot be had.
    """
    endpoint = parse_address(settings.listen)
    archives = open_archives(settings.archives) if settings.archives else None
    events = StoredEvents(archives, settings.events) if archives else None
    tls = load_certificate(*settings.certificate) if settings.certificate else None
    needs_token = _needs_token(settings, endpoint)
    names = server_names(endpoint, settings.allow_hosts, socket.gethostname())
    token = new_token() if settings.token_file is None else read_token(settings.token_file)
    listener = settings.inherited or open_listener(endpoint)
    with listener:
        port = int(listener.getsockname()[1])
        # Cookies know no ports: two servers of one machine need two names.
        gate = Gate(names, token, needs_token, f"spectrod-{port}", settings.root_path)
        serving = _Serving(settings, signals, gate, listener, tls)
        if archives is None or events is None:
            return asyncio.run(serving.daemons())
        return asyncio.run(serving.archives(archives, events))


def _needs_token(settings: WebSettings, endpoint: Endpoint) -> bool:
    """Return whether browsers need the token: if others than this machine's reach the page."""
    if settings.has_no_token and not is_local(endpoint):
        raise ConfigError(
            f"listen={settings.listen!r}: --no-token is for addresses of this machine alone"
        )
    is_reachable = not is_local(endpoint) or bool(settings.allow_hosts)
    return is_reachable and not settings.has_no_token


@dataclass(frozen=True, slots=True)
class _Serving:
    """What a server needs whatever its pages show."""

    settings: WebSettings
    signals: Signals
    gate: Gate
    listener: socket.socket
    tls: ssl.SSLContext | None

    async def archives(self, archives: Archives, events: StoredEvents) -> int:
        """Serve what is stored."""
        pages = ArchivePages(archives, Limits(clients=self.settings.clients), events)
        history = history_routes(archives, Ring(), lambda: archives.topics)
        history.append(events_route(events))
        return await self._until(Services(read_page(), pages, None, history), pages.run())

    async def daemons(self) -> int:
        """Serve what daemons publish, and their past."""
        settings = self.settings
        hub = Hub(
            settings.endpoints,
            server_key=settings.server_key,
            key_file=settings.key_file,
            limits=Limits(clients=settings.clients),
            history=True,
            can_control=settings.can_control,
        )
        hub.has_sound = settings.has_sound
        ring = Ring()
        hub.add_listener(ring.push)
        ask = ReplayClient(settings.server_key, settings.key_file).ask
        replayed = ReplayedRows(lambda: hub.topics, ring.push, ask)
        hub.add_listener(replayed.note)
        hub.add_forgetter(ring.forget)
        hub.add_forgetter(replayed.forget)
        forgotten = asyncio.Event()
        hub.add_forgetter(lambda _: forgotten.set())
        index = RecordingIndex(settings.recordings)
        hub.find_past = TopicPasts(index, ring, lambda: dict(hub.topics)).find
        hub.find_recorded = RecordedTopics(index, len(set(settings.endpoints))).of
        history = history_routes(index, ring, lambda: dict(hub.topics), replayed.settled)
        if settings.has_sound:
            history += sound_routes(settings.recordings)
        with _control(settings) as control, contextlib.closing(replayed):
            services = Services(read_page(), hub, control.answer if control else None, history)
            return await self._until(services, hub.run(), forgotten)

    async def _until(
        self,
        services: Services,
        work: Coroutine[Any, Any, None],
        forgotten: asyncio.Event | None = None,
    ) -> int:
        settings = self.settings
        guard = make_app(services, self.gate, GuardLimits(clients=settings.clients))
        if settings.inherited is None:
            _announce(settings, self.gate, self.listener, is_tls=self.tls is not None)
        end = _End(settings, self.signals, self.tls)
        with end.watched():
            n_connections = settings.clients + SPARE_CONNECTIONS
            server = Server(guard, self.listener, self.tls, n_connections)
            return await _until(end, work, server, guard, forgotten or asyncio.Event())


@contextlib.contextmanager
def _control(settings: WebSettings) -> Iterator[ControlRelay | None]:
    if not settings.can_control:
        yield None
        return
    relay = ControlRelay(
        settings.endpoints, server_key=settings.server_key, key_file=settings.key_file
    )
    with contextlib.closing(relay):
        yield relay


def _announce(settings: WebSettings, gate: Gate, listener: socket.socket, *, is_tls: bool) -> None:
    """Print the address, or log it under a service manager.

    It has the token on terminals, and where that is in no file either.
    """
    endpoint = parse_address(settings.listen)
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    has_use = gate.needs_token or settings.can_control or settings.has_sound
    is_shown = has_use and (is_terminal or settings.token_file is None)
    token = gate.token.reveal() if is_shown else None
    link = page_link(endpoint, int(listener.getsockname()[1]), tls=is_tls, token=token)
    if "NOTIFY_SOCKET" in os.environ:
        _log.info("the page is at %s", link)
    else:
        print(f"the page is at {link}", flush=True)
    if is_terminal and gate.needs_token and sys.stdout.encoding.lower() == "utf-8":
        print(qr_code(link), flush=True)
    if not is_local(endpoint) and not is_tls:
        _log.warning(
            "without --tls-cert the token and all spectra cross the network unencrypted: use it, "
            "or a proxy with TLS, in networks that others share"
        )


class _End:
    """What ends the server: signals, and standard input of a server that another process started.

    SIGHUP reads the certificate again: those of Let's Encrypt last for weeks.
    """

    def __init__(self, settings: WebSettings, signals: Signals, tls: ssl.SSLContext | None) -> None:
        self._settings, self._signals, self._tls = settings, signals, tls
        self._loop = asyncio.get_running_loop()
        self.exit_code: asyncio.Future[int] = self._loop.create_future()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watch both within the context."""
        self._loop.add_reader(self._signals.fileno(), self._on_signal)
        has_parent = self._settings.inherited is not None
        if has_parent:
            self._loop.add_reader(_STDIN_FD, self._on_input)
        try:
            yield
        finally:
            self._loop.remove_reader(self._signals.fileno())
            if has_parent:
                self._loop.remove_reader(_STDIN_FD)

    def _on_signal(self) -> None:
        for number in self._signals.read():
            if number in _EXIT_CODES:
                self._finish(_EXIT_CODES[number])
            elif number == signal.SIGHUP:
                self._reload()

    def _on_input(self) -> None:
        if not os.read(_STDIN_FD, 4096):
            self._finish(0)

    def _finish(self, exit_code: int) -> None:
        if not self.exit_code.done():
            self.exit_code.set_result(exit_code)

    def _reload(self) -> None:
        if self._tls is None or self._settings.certificate is None:
            return
        try:
            load_certificate(*self._settings.certificate, context=self._tls)
        except ConfigError as error:
            _log.error("reload refused: %s", error)
        else:
            _log.info("reload: the certificate was read again")


async def _until(
    end: _End,
    work: Coroutine[Any, Any, None],
    server: Server,
    guard: Guard,
    forgotten: asyncio.Event,
) -> int:
    """Run all tasks until the end; raise what ended one of them before."""
    notifier = Notifier()
    tasks = [
        asyncio.create_task(server.serve()),
        asyncio.create_task(work),
        asyncio.create_task(_report(notifier, guard, forgotten)),
    ]
    notifier.ready()
    ends: list[asyncio.Future[Any]] = [end.exit_code, *tasks]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        return end.exit_code.result()
    finally:
        notifier.stopping()
        for task in tasks:  # the server first: its connections end before what feeds them
            task.cancel()
            await asyncio.wait([task])


async def _report(notifier: Notifier, guard: Guard, forgotten: asyncio.Event) -> None:
    """Tell the service manager once a second that the event loop runs; give back freed memory."""
    while True:
        if forgotten.is_set():
            forgotten.clear()
            give_back_memory()
        notifier.watchdog()
        notifier.status(f"running: {guard.n_clients} pages")
        await asyncio.sleep(_TICK_S)
