"""``spectrod ctl``: query or change a running daemon."""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, get_args

from spectrod.apps.ctl import ctl_text
from spectrod.apps.ctl.replaced_file import replace_text
from spectrod.cli.numbers import count, seconds
from spectrod.cli.progress import ProgressBar
from spectrod.client.control import Control
from spectrod.daemon.monitoring.families import TextFormat
from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    DeniedError,
    SpectrodError,
    StorageError,
    UnavailableError,
    WireError,
)
from spectrod.lib.output_formats import suffixes
from spectrod.lib.text import json_text, printable, printable_all, reason_of
from spectrod.wire.endpoint import parse_endpoint
from spectrod.wire.endpoint_discovery import (
    beside,
    check_answers,
    check_none_closed,
    find_endpoints,
    instance_of,
    preferred,
)
from spectrod.wire.requests import METHODS

_READ_TIMEOUT_S = 10.0
_CHANGE_TIMEOUT_S = 60.0  # kernels are compiled for some, and pictures drawn, up to 30 s each
_FOLLOW_S = 0.5
_PATIENCE_S = 1.0
_LOOK_S = 1.0
_NAMED_MAX = 4
_COMPILES = ("set", "reload", "source")
_UNAVAILABLE = UnavailableError.exit_code
_BAD_STATES = ("waiting", "failed")
_UNWRITABLE_STATES = ("full", "failed")
_LEARNING_CODES = {
    "storage": StorageError.exit_code,
    "unavailable": UnavailableError.exit_code,
}
_NOT_AS_DESCRIBED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Exceptions for a reply without the fields and types that docs/control.md describes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    # Accepted before and after the method: a default after it must not override a value before it.
    _add_common(parser, is_default=True)
    methods = parser.add_subparsers(dest="what", metavar="WHAT", required=True)

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        method = methods.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        _add_common(method, is_default=False)
        return method

    add(
        "status",
        "state, losses and products of each source; exit code 69 if one waits or failed, 74 if a "
        "recording cannot be written",
    )
    _add_metrics(add("metrics", "every counter, a line each, or as Prometheus reads it"))
    add("get", "settings in force").add_argument("key", nargs="?", default="", metavar="KEY")
    _add_pairs(add("set", "change settings of the running daemon: all, or none if one fails"))
    add("reload", "read the configuration and the keys again; the file overrides earlier changes")
    for name, summary in (
        ("pause", "stop the analysis, messages and recordings of a source, or of all"),
        ("resume", "continue after a pause"),
    ):
        _add_source(add(name, summary))
    reset = add("reset", "restart averages and holds, of all sources or of one source or product")
    _add_source(reset)
    reset.add_argument("product", nargs="?", default="", metavar="PRODUCT")
    _add_events(add("events", "list the daemon's events"))
    _add_replay(add("replay", "list stored messages, from a sequence number on"))
    _add_sources(add("source", "add or remove a source"))
    _add_learn(add("learn", "learn a mask for triggers from a source"))
    _add_record(add("record", "start, finish and list recordings; trigger configured ones"))


def _add_common(parser: argparse.ArgumentParser, *, is_default: bool) -> None:
    def default(value: Any) -> Any:
        return value if is_default else argparse.SUPPRESS

    group = parser.add_argument_group("daemon")
    group.add_argument(
        "--endpoint",
        metavar="E",
        default=default(None),
        help="its control or publish endpoint (the daemon of this user, else of this machine)",
    )
    group.add_argument(
        "-i",
        "--instance",
        metavar="NAME",
        default=default(None),
        help="the daemon of spectrod@NAME.service",
    )
    group.add_argument(
        "--json", action="store_true", default=default(value=False), help="print replies as JSON"
    )
    group.add_argument(
        "--timeout",
        metavar="S",
        type=seconds,
        default=default(None),
        help="time limit of a reply (10, for changes 60)",
    )
    group.add_argument(
        "--server-key",
        metavar="KEY",
        default=default(None),
        help="the daemon's public key, its file or its 40 characters",
    )
    group.add_argument(
        "--key",
        metavar="FILE",
        dest="key_file",
        default=default(None),
        help="secret key of this client (spectrod keys new)",
    )


def _add_metrics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("text", *get_args(TextFormat)),
        default="text",
        help="prometheus: of node_exporter's textfile collector (text)",
    )
    parser.add_argument(
        "--output", metavar="FILE", help="replace this file at once (standard output)"
    )


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", default="", metavar="SOURCE", help="(all)")


def _add_pairs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pairs", nargs="+", metavar="KEY=VALUE", help="as analysis.hop=512, log.level=debug"
    )


def _add_events(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--follow", action="store_true", help="continue with new events until Ctrl-C"
    )
    parser.add_argument("--since", metavar="N", type=int, default=0, help="start at number N (0)")
    parser.add_argument("--source", metavar="SOURCE", help="those of this source alone")
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        action="append",
        default=[],
        help="write the events of triggers that have ended to a file, as spectrod detect does; "
        "with --follow while they come; repeatable",
    )
    parser.add_argument(
        "--recordings",
        metavar="DIR",
        help="with -o: the sound files of the source in which the events are to be marked",
    )


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="spec/SOURCE/CHANNEL/PRODUCT/, or bands/...")
    parser.add_argument("first_seq", metavar="FIRST_SEQ", type=int)
    parser.add_argument(
        "--limit", metavar="N", type=count, default=256, help="maximum number of messages (256)"
    )


def _add_sources(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add a source")
    remove = actions.add_parser("remove", help="remove a source")
    for action in (add, remove):
        _add_common(action, is_default=False)
        action.add_argument("name", metavar="NAME")
    _add_pairs(add)


def _add_learn(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", default="", metavar="SOURCE", help="(the only source)")
    parser.add_argument("-o", "--output", dest="name", metavar="NAME", help="name of the mask")
    parser.add_argument("--product", default="", help="(the main one)")
    parser.add_argument(
        "--minutes", metavar="M", type=float, default=10.0, help="time to learn from (10)"
    )
    parser.add_argument(
        "--percentile",
        metavar="P",
        type=float,
        default=99.0,
        help="percentage of rows below the mask, without its margin (99)",
    )
    parser.add_argument(
        "--margin", metavar="DB", type=float, default=6.0, help="added to the percentile (6)"
    )
    parser.add_argument("--replace", action="store_true", help="replace the mask of this name")
    parser.add_argument("--detach", action="store_true", help="do not wait for the end")
    parser.add_argument("--abort", action="store_true", help="stop learning; no mask is made")
    parser.add_argument("--list", action="store_true", help="list masks that are being learned")


def _add_record(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    known = " ".join(suffixes(lambda one: one.is_of_daemon))
    start = actions.add_parser("start", help=f"start a file: {known}")
    stop = actions.add_parser("stop", help="finish one file, or all")
    trigger = actions.add_parser(
        "trigger", help="save the pre-roll and post-roll of configured recordings around now"
    )
    listing = actions.add_parser(
        "list", help="list recordings; exit code 74 if one cannot be written"
    )
    for action in (start, stop, trigger, listing):
        _add_common(action, is_default=False)
    start.add_argument("source", nargs="?", default="", metavar="SOURCE", help="(the only source)")
    start.add_argument("--product", default="", help="(the main one)")
    start.add_argument("--name", default="", help="name of the file (source, product and time)")
    start.add_argument("--duration", metavar="S", type=seconds, help="end after this time")
    stop.add_argument("name", nargs="?", default="", metavar="NAME", help="name of the file (all)")
    trigger.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="NAME",
        help="name of the recording (all with triggers)",
    )
    trigger.add_argument("--source", default="", help="(all)")


def run(args: argparse.Namespace) -> int:
    """Send one request and print the reply."""
    endpoint = find(args.endpoint, args.instance)
    rights = {one.right for name, one in METHODS.items() if name.partition(".")[0] == args.what}
    timeout_s = args.timeout or (_READ_TIMEOUT_S if rights == {"read"} else _CHANGE_TIMEOUT_S)
    with Control(
        endpoint, timeout_s=timeout_s, server_key=args.server_key, key_file=args.key_file
    ) as control:
        try:
            with _report_delay() if args.what in _COMPILES else nullcontext():
                return _COMMANDS[args.what](control, args)
        except SpectrodError:
            raise
        except _NOT_AS_DESCRIBED as error:
            # A reply may be any JSON, from a damaged daemon or another program.
            raise WireError(
                f"{endpoint}: reply to {args.what}: {printable(repr(error))}"
            ) from error


@contextmanager
def _report_delay() -> Iterator[None]:
    """Report the reason for the delay on standard error, if the daemon takes long to reply."""
    text = "waiting for the daemon: new kernels take seconds to compile, once for each analysis"
    timer = threading.Timer(_PATIENCE_S, print, (text,), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def find(requested: str | None, instance: str | None = None) -> str:
    """Return the control endpoint: the given one, the one beside it, or that of a running daemon.

    Of several that run, it is the only one of this user's own daemon, or else of the system's.

    Raises
    ------
    BusyError, ConfigError, DeniedError, UnavailableError
        If there is none, several, or none that this user may use.
    """
    if requested is not None and instance is not None:
        raise ConfigError(f"--endpoint {requested}: must not be beside --instance {instance}")
    if requested is not None:
        endpoint = parse_endpoint(requested)
        found = beside(endpoint)
        if found is None:
            check_answers(endpoint)
        return found or requested
    answering, denied = find_endpoints()
    if instance is not None:
        return _of_instance(instance, answering, denied)
    if len(answering) == 1:
        return answering[0]
    if answering:
        if (found := preferred(answering)) is None:
            raise ConfigError(f"several daemons run; name one with {_described(answering)}")
        return found
    if denied:
        raise DeniedError(f"{', '.join(denied)}: permission denied; for its user and group only")
    check_none_closed()
    raise UnavailableError(
        "no daemon on this machine accepts requests; is one running? A control socket with a path "
        "of its own is named with --endpoint ipc://PATH"
    )


def _of_instance(name: str, answering: Sequence[str], denied: Sequence[str]) -> str:
    of_name = [one for one in answering if instance_of(one) == name]
    if len(of_name) > 1:
        raise ConfigError(f"instance {name}: several daemons; name one with {_described(of_name)}")
    if of_name:
        return of_name[0]
    if any(instance_of(one) == name for one in denied):
        raise DeniedError(f"instance {name}: permission denied; for its user and group only")
    known = ", ".join(dict.fromkeys(filter(None, map(instance_of, answering)))) or "none"
    raise UnavailableError(f"instance {name}: no such daemon runs; there are: {known}")


def _described(endpoints: Sequence[str]) -> str:
    """List daemons with the option that names each, and their sources."""
    names = (
        f"-i {name}" if (name := instance_of(one)) else f"--endpoint {one}" for one in endpoints
    )
    several = zip(names, endpoints, strict=True)
    return ", ".join(f"{name} ({_sources_of(one)})" for name, one in several)


def _sources_of(endpoint: str, *, timeout_s: float = _LOOK_S) -> str:
    try:
        with Control(endpoint, timeout_s=timeout_s) as control:
            names = [str(source["name"]) for source in control.call("status")["sources"]]
    except (SpectrodError, *_NOT_AS_DESCRIBED):
        return "does not answer"
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return f"sources {', '.join(map(printable, names[:_NAMED_MAX]))}{more}"


def _print(args: argparse.Namespace, result: Any, text: Callable[[Any], str]) -> None:
    """Print a reply as JSON if requested, otherwise as printable text."""
    print(json_text(result) if args.json else text(printable_all(result)))


def _status(control: Control, args: argparse.Namespace) -> int:
    status = control.call("status")
    _print(args, status, ctl_text.status_text)
    if any(source["state"] in _BAD_STATES for source in status["sources"]):
        return _UNAVAILABLE
    return _storage_code(status)


def _metrics(control: Control, args: argparse.Namespace) -> int:
    if args.format == "text":
        metrics = control.call("metrics")
        text = json_text(metrics) if args.json else ctl_text.metrics_text(printable_all(metrics))
        text += "\n"
    elif args.json:
        raise ConfigError(f"--json and --format {args.format}: must be one of the two")
    else:
        text = control.call("metrics", format=args.format)
        if not isinstance(text, str):
            raise WireError("reply to metrics: must be text")
    if args.output is None:
        sys.stdout.write(text)
    else:
        replace_text(Path(args.output), text)
    return 0


def _get(control: Control, args: argparse.Namespace) -> int:
    value = control.call("get", key=args.key)
    _print(args, value, lambda value: ctl_text.value_text(value, args.key))
    return 0


def _set(control: Control, args: argparse.Namespace) -> int:
    return _print_lines(args, control.call("set", changes=_pairs(args.pairs)))


def _reload(control: Control, args: argparse.Namespace) -> int:
    return _print_lines(args, control.call("reload"))


def _pause(control: Control, args: argparse.Namespace) -> int:
    return _print_lines(args, control.call(args.what, source=args.source))


def _reset(control: Control, args: argparse.Namespace) -> int:
    return _print_lines(args, control.call("reset", source=args.source, product=args.product))


def _print_lines(args: argparse.Namespace, lines: list[str]) -> int:
    _print(args, lines, lambda lines: "\n".join(lines) or "nothing has changed")
    return 0


def _source(control: Control, args: argparse.Namespace) -> int:
    if args.action == "remove":
        return _print_lines(args, control.call("source.remove", name=args.name))
    settings: dict[str, Any] = {}
    for key, value in _pairs(args.pairs).items():
        table, _, own_key = key.rpartition(".")
        (settings.setdefault(table, {}) if table else settings)[own_key] = value
    return _print_lines(args, control.call("source.add", name=args.name, settings=settings))


def _learn(control: Control, args: argparse.Namespace) -> int:
    """Learn a mask and wait for it, unless detached."""
    if args.list:
        _print(args, control.call("learn.list"), ctl_text.learning_text)
        return 0
    if args.abort:
        _print(args, control.call("learn.abort", name=args.name or ""), _learning_line)
        return 0
    if not args.name:
        raise ConfigError("-o: must name the mask to learn")
    learning = control.call(
        "learn.start",
        source=args.source,
        product=args.product,
        name=args.name,
        duration_s=60.0 * args.minutes,
        percentile=args.percentile,
        margin_db=args.margin,
        replace=args.replace,
    )
    if not args.detach:
        learning = _await_learning(control, learning)
    _print(args, learning, _learning_line)
    if learning["state"] in ("learning", "finished"):
        return 0
    return _LEARNING_CODES.get(learning["error_code"], BusyError.exit_code)


def _await_learning(control: Control, learning: Mapping[str, Any]) -> Mapping[str, Any]:
    """Wait until a mask has been learned, with a progress bar; return its last state."""
    with ProgressBar(learning["fs"], learning["due_samples"]) as bar:
        while learning["state"] == "learning":
            bar.update(learning["seen_samples"])
            time.sleep(_FOLLOW_S)
            found = [one for one in control.call("learn.list") if one["name"] == learning["name"]]
            if not found:
                raise UnavailableError(f"mask {learning['name']}: the daemon was restarted")
            learning = found[-1]
    return learning


def _learning_line(one: Mapping[str, Any]) -> str:
    trouble = f": {one['error']}" if one["error"] else ""
    return f"{one['path']}: {one['state']}, {one['rows']} rows{trouble}"


def _record(control: Control, args: argparse.Namespace) -> int:
    return _RECORD_ACTIONS[args.action](control, args)


def _start_recording(control: Control, args: argparse.Namespace) -> int:
    recording = control.call(
        "record.start",
        source=args.source,
        product=args.product,
        name=args.name,
        duration_s=args.duration,
    )
    _print(args, recording, lambda recording: str(recording["path"]))
    return 0


def _trigger_recording(control: Control, args: argparse.Namespace) -> int:
    return _print_lines(args, control.call("record.trigger", name=args.name, source=args.source))


def _list_recordings(control: Control, args: argparse.Namespace) -> int:
    status = control.call("status")
    found = {key: status.get(key, []) for key in ("recordings", "recorders")}
    _print(args, found, ctl_text.recordings_text)
    return _storage_code(found)


def _storage_code(status: Mapping[str, Any]) -> int:
    """Return the exit code for the configured recordings: 74 if one cannot be written."""
    recorders = status.get("recorders", ())  # older daemons do not send them
    is_bad = any(one["state"] in _UNWRITABLE_STATES for one in recorders)
    return StorageError.exit_code if is_bad else 0


def _stop_recording(control: Control, args: argparse.Namespace) -> int:
    stopped = control.call("record.stop", name=args.name)
    _print(args, stopped, lambda stopped: "\n".join(map(_recording_text, stopped)))
    return 0 if all(one["state"] == "finished" for one in stopped) else StorageError.exit_code


def _recording_text(recording: Mapping[str, Any]) -> str:
    trouble = f": {recording['error']}" if recording["error"] else ""
    unit = "samples" if recording.get("samples") else "rows"
    n_written = recording.get(unit, recording["frames"])  # older daemons have frames alone
    return f"{recording['path']}: {recording['state']}, {n_written} {unit}{trouble}"


def _events(control: Control, args: argparse.Namespace) -> int:
    groups = _listed(control, args)
    if args.output or args.recordings:
        from spectrod.apps.ctl.event_output import write_events  # noqa: PLC0415 - it loads NumPy

        return write_events(control, args, groups)
    for events in groups:
        for event in events:
            _print(args, event, ctl_text.event_text)
        sys.stdout.flush()
    return 0


def _listed(control: Control, args: argparse.Namespace) -> Iterator[list[Mapping[str, Any]]]:
    """Yield new events; to follow, request from the last one on, to show that none is missing."""
    since, last = args.since, None
    while True:
        events = _unseen(control.call("events", since=since, limit=1000), last)
        if events is None:
            print("the daemon was restarted", file=sys.stderr)
            since, last = 0, None
            continue
        if events:
            since, last = events[-1]["number"], events[-1]
        yield [one for one in events if args.source in (None, one["source"])]
        if not args.follow:
            return
        time.sleep(_FOLLOW_S)


def _unseen(
    events: list[Mapping[str, Any]], last: Mapping[str, Any] | None
) -> list[Mapping[str, Any]] | None:
    """Drop the event seen last; None if the events are from another start of the daemon."""
    if last is None:
        return events
    if events[:1] == [last]:
        return events[1:]
    n_gone = events[0]["number"] - last["number"] - 1 if events else -1
    if n_gone < 0:
        return None
    if n_gone:
        print(f"{n_gone} events in between are gone", file=sys.stderr)
    return events


def _replay(control: Control, args: argparse.Namespace) -> int:
    from spectrod.apps.ctl.ctl_replay import message_lines  # noqa: PLC0415 - messages load NumPy

    for line in message_lines(control, args.topic, args.first_seq, args.limit, as_json=args.json):
        print(line)
    return 0


def _pairs(texts: list[str]) -> dict[str, Any]:
    """Parse KEY=VALUE; a value that looks like a table, a list or null is JSON, others are text.

    Raises
    ------
    ConfigError
        If there is no =, or a key is given twice.
    """
    pairs: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise ConfigError(f"{text!r}: must be KEY=VALUE")
        if key in pairs:
            raise ConfigError(f"{key}: given twice")
        pairs[key] = _value(key, value)
    return pairs


def _value(key: str, text: str) -> Any:
    if text[:1] not in ("{", "[") and text != "null":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{key}={text!r}: not valid JSON: {reason_of(error)}") from error


_RECORD_ACTIONS: Final[Mapping[str, Callable[[Control, argparse.Namespace], int]]] = {
    "start": _start_recording,
    "stop": _stop_recording,
    "trigger": _trigger_recording,
    "list": _list_recordings,
}

_COMMANDS: Final[Mapping[str, Callable[[Control, argparse.Namespace], int]]] = {
    "status": _status,
    "metrics": _metrics,
    "get": _get,
    "set": _set,
    "reload": _reload,
    "pause": _pause,
    "resume": _pause,
    "reset": _reset,
    "source": _source,
    "record": _record,
    "events": _events,
    "learn": _learn,
    "replay": _replay,
}
