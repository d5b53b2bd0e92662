"""Print the highest bin of every spectrum, and what was missed on the way.

    python subscribe.py [ENDPOINT [PREFIX]] [--json] [--count N] [--key ME.key --server-key BOX.pub]
    python subscribe.py --check ../tests/data/golden_v1.json

Needs pyzmq and NumPy, and nothing of spectrod: it follows docs/protocol.md. The daemon may start
later, end and come back. live_plot.py and log_to_csv.py are built on this file;
subscribe_plain.py does the same without NumPy.
"""

import argparse
import json
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zmq

SILENCE_S = 3  # a daemon says something each second


class Message(NamedTuple):
    """One message; values are None where there is no payload, as in a heartbeat."""

    topic: str
    header: dict[str, Any]
    values: np.ndarray | None
    missed: int = 0
    restarted: bool = False


def connect(
    endpoint: str, *prefixes: str, key: str | None = None, server_key: str | None = None
) -> zmq.Socket:
    """Subscribe. A prefix is one of bytes, so end it with a slash: spec/mic1/."""
    socket = zmq.Context.instance().socket(zmq.SUB)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.IPV6, "[" in endpoint)
    # ZeroMQ connects again by itself, as often as it takes; and notices a cable that was pulled.
    socket.setsockopt(zmq.RECONNECT_IVL, 100)
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 2)
    socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, 2)
    socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, 2)
    if key and server_key:
        mine = tomllib.loads(Path(key).read_text(encoding="utf-8"))
        theirs = tomllib.loads(Path(server_key).read_text(encoding="utf-8"))
        socket.curve_publickey = mine["public_key"].encode()
        socket.curve_secretkey = mine["secret_key"].encode()
        socket.curve_serverkey = theirs["public_key"].encode()
    for prefix in prefixes:
        socket.subscribe(prefix)
    socket.connect(endpoint)
    return socket


def decode(parts: list[bytes]) -> Message:
    """Read a message; ValueError says which rule it breaks. Parts after the payload are ignored."""
    try:
        topic, header = parts[0].decode("ascii"), json.loads(parts[1])
        if header["v"] != 1:
            raise ValueError(f"{topic}: v={header['v']}: this program reads version 1")
        if [type(header[name]) for name in ("seq", "epoch")] != [int, int]:
            raise ValueError(f"{topic}: seq={header['seq']!r}: it and epoch must be integers")
        if "shape" not in header:
            return Message(topic, header, None)
        if header["dtype"] not in ("<f4", "<f8"):  # never give NumPy a type that a peer has named
            raise ValueError(f"{topic}: dtype={header['dtype']}: must be <f4 or <f8")
        values = np.frombuffer(parts[2], header["dtype"])
        if header["shape"] != [len(values)]:
            raise ValueError(f"{topic}: shape={header['shape']}: {len(values)} values came")
        if topic.startswith("spec/"):
            nfft = header["nfft"]
            expected = nfft if header.get("first_bin", 0) else nfft // 2 + 1
            if len(values) != expected:
                raise ValueError(f"{topic}: {len(values)} values: must be {expected}, {nfft=}")
    except (IndexError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{parts[0][:80]!r}: {error!r}") from error
    return Message(topic, header, values)


class Losses:
    """Finds holes in seq, and restarts of the daemon."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int]] = {}

    def compare(self, message: Message) -> Message:
        """Tell how many messages of the topic are missing directly before this one."""
        epoch, seq = message.header["epoch"], message.header["seq"]
        # The first message of a topic may have any seq: a late subscriber has missed nothing.
        last_epoch, last_seq = self._last.get(message.topic, (epoch, seq - 1))
        self._last[message.topic] = (epoch, seq)
        if epoch != last_epoch:
            return message._replace(restarted=True)
        return message._replace(missed=max(0, seq - last_seq - 1))


def receive(socket: zmq.Socket) -> Iterator[Message | None]:
    """Yield messages as they come, and None each time that nothing came for 3 s.

    Messages that break the protocol are reported on standard error and skipped.
    """
    losses = Losses()
    while True:
        if not socket.poll(SILENCE_S * 1000):
            yield None
            continue
        try:
            message = losses.compare(decode(socket.recv_multipart()))
        except ValueError as error:
            print(f"left out: {error}", file=sys.stderr, flush=True)
            continue
        yield message


def frequency_hz(header: dict[str, Any], k: int) -> float:
    """Return where value k of a spectrum lies [Hz]."""
    offset_hz = (header.get("first_bin", 0) + k) * header["fs"] / header["nfft"]
    return header.get("center_frequency_hz", 0.0) + offset_hz


def as_json(message: Message) -> str:
    """Write a message as one line; what is not finite is null, which JSON has no numbers for."""
    record = message._asdict()
    if message.values is not None:
        values = message.values.tolist()
        record["values"] = [value if np.isfinite(value) else None for value in values]
    return json.dumps(record)


def show(message: Message) -> None:
    """Print what a person wants to know of a message."""
    topic, header, values, missed, restarted = message
    if restarted:
        print(f"{topic} the daemon was restarted", file=sys.stderr)
    if missed:
        print(f"{topic} {missed} missed before seq {header['seq']}", file=sys.stderr)
    if values is not None and topic.startswith("spec/"):
        if header.get("gap_samples"):
            print(f"{topic} gap of {header['gap_samples']} samples", file=sys.stderr)
        k = int(values.argmax())
        hertz = frequency_hz(header, k)
        print(f"{topic} {hertz:.1f} Hz {values[k]:.2f} {header['unit']}", flush=True)


def check(path: str) -> None:
    """Decode the messages of a file of golden ones and print each as a line of JSON."""
    for golden in json.loads(Path(path).read_text(encoding="utf-8")):
        payload = bytes.fromhex(golden["payload_hex"] or "")
        print(as_json(decode([golden["topic"].encode(), golden["header"].encode(), payload])))


def main() -> None:
    """Read the arguments, then messages until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("endpoint", nargs="?", default="tcp://127.0.0.1:5556")
    parser.add_argument("prefix", nargs="?", default="spec/", help="topics wanted (%(default)s)")
    parser.add_argument("--json", action="store_true", help="every message as a line of JSON")
    parser.add_argument("--count", type=int, default=0, help="end after this number of spectra")
    parser.add_argument("--key", metavar="ME.key", help="who I am (spectrod keys new)")
    parser.add_argument("--server-key", metavar="BOX.pub", help="public key of the daemon")
    parser.add_argument("--check", metavar="FILE", help="decode golden messages instead")
    args = parser.parse_args()
    if args.check:
        check(args.check)
        return
    # hb/ beats each second: silence is then not mistaken for death. meta/ says what values mean.
    prefixes = (args.prefix, "hb/", *(["meta/"] if args.json else []))
    spectra = 0
    with connect(args.endpoint, *prefixes, key=args.key, server_key=args.server_key) as socket:
        for message in receive(socket):
            if message is None:
                print(f"nothing from {args.endpoint} for {SILENCE_S} s", file=sys.stderr)
                continue
            if args.json:
                print(as_json(message), flush=True)
            else:
                show(message)
            spectra += message.topic.startswith(args.prefix)
            if spectra == args.count != 0:
                return


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output is gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        sys.exit(1)
