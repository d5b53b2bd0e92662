"""``spectrod mqtt``: publishes levels, bands, states and events of a daemon to an MQTT broker."""

import argparse
import math
import socket
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from spectrod.apps.mqtt.address import check_topic_prefix, parse_broker, read_password
from spectrod.apps.mqtt.discovery import SUBSCRIPTIONS, TRIGGER_CLASSES, Discovery
from spectrod.apps.mqtt.mqtt import Bridge
from spectrod.apps.mqtt.mqtt_topics import Topics
from spectrod.cli import options
from spectrod.client.connection import Connection, read_credentials
from spectrod.client.subscription import open_subscription
from spectrod.daemon.service import Notifier, caught_signals, configure_logging
from spectrod.lib.allocator import share_arenas
from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.lib.names import check_name, is_name
from spectrod.wire.endpoint import parse_remote

_INTERVAL_MAX_S = 86_400.0
_QUEUE_MAX = 1_000_000
_TICK_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "endpoint",
        nargs="?",
        default="tcp://127.0.0.1:5556",
        metavar="ENDPOINT",
        help="publish endpoint of the daemon (%(default)s)",
    )
    parser.add_argument(
        "--broker", metavar="URL", help="mqtt[s]://[USER@]HOST[:PORT]; must be given"
    )
    parser.add_argument(
        "--password-file", metavar="FILE", help="the user's password; others must not read it"
    )
    parser.add_argument(
        "--ca-file", metavar="FILE", help="certificates of the broker's CA (the system's)"
    )
    parser.add_argument(
        "--node", metavar="NAME", help="name of this machine in every topic (host name)"
    )
    parser.add_argument(
        "--prefix", default="spectrod", metavar="TOPIC", help="prefix of all topics (%(default)s)"
    )
    parser.add_argument(
        "--subscribe",
        action="append",
        metavar="PREFIX",
        help="bridge only these topics of the daemon; may be repeated (all)",
    )
    parser.add_argument(
        "--interval", default="10", metavar="S", help="interval between levels (%(default)s)"
    )
    parser.add_argument("--qos", type=int, choices=(0, 1), default=1, help="(%(default)s)")
    parser.add_argument("--retain", action="store_true", help="the broker keeps the last levels")
    parser.add_argument(
        "--queue",
        default="1000",
        metavar="N",
        help="maximum number of messages kept while disconnected (%(default)s)",
    )
    parser.add_argument(
        "--discovery",
        metavar="PREFIX",
        help="announce all topics to Home Assistant as sensors; its prefix is homeassistant",
    )
    parser.add_argument(
        "--device-class",
        action="append",
        default=[],
        metavar="TRIGGER=CLASS",
        help="Home Assistant's class of a trigger: smoke, motion, running (sound); repeatable",
    )
    parser.add_argument("--log-level", default="info", metavar="LEVEL", help="(%(default)s)")
    options.add_keys(parser)


def run(args: argparse.Namespace) -> int:
    """Run the bridge until a signal."""
    if find_spec("paho") is None:
        raise UnavailableError("paho-mqtt is not installed: pip install 'spectrod[mqtt]'")
    share_arenas()
    configure_logging(args.log_level)
    with caught_signals() as signals:
        return _Bridging(args).run(signals.exit_code)


class _Bridging:
    """The bridge's settings, checked before anything is opened."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        if args.broker is None:
            raise ConfigError(
                "--broker: must be given, as mqtts://spectrod@broker.lan; for the service "
                "in the file /etc/spectrod/mqtt.env, a line SPECTROD_MQTT=--broker URL"
            )
        password = read_password(Path(args.password_file)) if args.password_file else None
        address = parse_broker(args.broker)
        if password is not None and address.user is None:
            raise ConfigError(f"broker={args.broker!r}: names no user that --password-file is of")
        if args.ca_file is not None and not address.tls:
            raise ConfigError(f"ca-file={args.ca_file!r}: is for mqtts://, not {args.broker!r}")
        self._address = replace(address, password=password, ca_file=args.ca_file)
        node = check_name("node", socket.gethostname() if args.node is None else args.node)
        self._topics = Topics(check_topic_prefix("prefix", args.prefix), node, args.retain)
        self._interval_s = _number("interval", args.interval, 1.0, _INTERVAL_MAX_S)
        self._queue_messages = int(_number("queue", args.queue, 1.0, _QUEUE_MAX))
        self._discovery = None
        if args.discovery is not None:
            prefix = check_topic_prefix("discovery", args.discovery)
            classes = dict(map(_device_class, args.device_class))
            self._discovery = Discovery(
                prefix,
                self._topics,
                self._interval_s,
                args.qos,
                classes,
                subscriptions=tuple(args.subscribe or ()),
            )
        elif args.device_class:
            raise ConfigError("--device-class: needs --discovery")

    def run(self, exit_code: Callable[[], int | None]) -> int:
        """Run the bridge until there is an exit code."""
        from spectrod.apps.mqtt.broker import Broker  # noqa: PLC0415 - paho-mqtt may be missing

        broker = Broker(
            self._address,
            self._topics.online(is_online=False),
            client_id=f"spectrod-{self._topics.node}",
            qos=self._args.qos,
            queue_messages=self._queue_messages,
        )
        notifier = Notifier()
        with closing(self._subscribe()) as connection:
            bridge = Bridge(connection, broker, self._topics, self._discovery, self._interval_s)
            broker.start()
            notifier.ready()
            try:
                return bridge.run(exit_code, _Ticker(notifier, bridge))
            finally:
                notifier.stopping()
                broker.stop()

    def _subscribe(self) -> Connection:
        keys = read_credentials(self._args.server_key, self._args.key)
        first, *others = self._args.subscribe or SUBSCRIPTIONS
        connection = open_subscription(parse_remote(self._args.endpoint), first, keys, None)
        for prefix in ("meta/", "hb/", *others):
            connection.subscribe(prefix)
        return connection


class _Ticker:
    """Reports to the service manager once a second that the bridge is alive, and its state."""

    def __init__(self, notifier: Notifier, bridge: Bridge) -> None:
        self._notifier, self._bridge = notifier, bridge
        self._due_s = 0.0

    def __call__(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._due_s = now_s + _TICK_S
            self._notifier.watchdog()
            self._notifier.status(self._bridge.status())


def _device_class(text: str) -> tuple[str, str]:
    """Return the trigger and the device class of ``TRIGGER=CLASS``."""
    name, _, found = text.partition("=")
    if not is_name(name) or found not in TRIGGER_CLASSES:
        classes = ", ".join(TRIGGER_CLASSES)
        raise ConfigError(f"device-class={text!r}: must be TRIGGER=CLASS, with one of {classes}")
    return name, found


def _number(name: str, text: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise ConfigError(f"{name}={text!r}: must be {least:g} to {most:g}")
    return value
