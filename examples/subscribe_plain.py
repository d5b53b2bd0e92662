"""Print the highest bin of every spectrum, with pyzmq and the standard library alone.

    python subscribe_plain.py [ENDPOINT [PREFIX]]
    python subscribe_plain.py --check ../tests/data/golden_v1.json

For boxes without NumPy. subscribe.py has more options and comments.
"""

import json
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zmq

CODES = {"<f4": ("f", 4), "<f8": ("d", 8)}


def decode(parts: Sequence[bytes]) -> tuple[str, dict[str, Any], tuple[float, ...]]:
    """Read topic, header and values, of which heartbeats have none; ValueError if a rule breaks."""
    topic, header = parts[0].decode("ascii"), json.loads(parts[1])
    if header["v"] != 1:
        raise ValueError(f"{topic}: v={header['v']}: this program reads version 1")
    if "shape" not in header:
        return topic, header, ()
    if header["dtype"] not in CODES:
        raise ValueError(f"{topic}: dtype={header['dtype']}: must be <f4 or <f8")
    code, size = CODES[header["dtype"]]
    (count,) = header["shape"]
    if len(parts[2]) != count * size:
        raise ValueError(f"{topic}: payload of {len(parts[2])} bytes: must be {count * size}")
    return topic, header, struct.unpack(f"<{count}{code}", parts[2])  # little-endian everywhere


def check(path: str) -> None:
    """Decode the messages of a file of golden ones and print each as a line of JSON."""
    for golden in json.loads(Path(path).read_text(encoding="utf-8")):
        payload = bytes.fromhex(golden["payload_hex"] or "")
        parts = [golden["topic"].encode(), golden["header"].encode(), payload]
        topic, header, values = decode(parts)
        has_payload = golden["payload_hex"] is not None
        record = {"topic": topic, "header": header, "values": values if has_payload else None}
        print(json.dumps(record))


def main(endpoint: str = "tcp://127.0.0.1:5556", prefix: str = "spec/") -> None:
    """Print until Ctrl-C."""
    socket = zmq.Context.instance().socket(zmq.SUB)
    socket.setsockopt(zmq.RECONNECT_IVL, 100)
    for wanted in (prefix, "hb/"):
        socket.subscribe(wanted)
    socket.connect(endpoint)
    last: dict[str, tuple[int, int]] = {}
    while True:
        if not socket.poll(3000):
            print(f"nothing from {endpoint} for 3 s", file=sys.stderr)
            continue
        topic, h, values = decode(socket.recv_multipart())
        epoch, seq = last.get(topic, (h["epoch"], h["seq"] - 1))
        last[topic] = h["epoch"], h["seq"]
        if h["epoch"] != epoch:
            print(f"{topic} the daemon was restarted", file=sys.stderr)
        elif h["seq"] != seq + 1:
            print(f"{topic} {h['seq'] - seq - 1} missed before seq {h['seq']}", file=sys.stderr)
        if values:
            k = max(range(len(values)), key=values.__getitem__)
            hertz = (h.get("first_bin", 0) + k) * h["fs"] / h["nfft"]
            hertz += h.get("center_frequency_hz", 0.0)
            print(f"{topic} {hertz:.1f} Hz {values[k]:.2f} {h['unit']}", flush=True)


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["--check"]:
            check(sys.argv[2])
        else:
            main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output is gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        sys.exit(1)
