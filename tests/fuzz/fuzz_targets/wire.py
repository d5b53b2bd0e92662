"""Messages, requests and replies, as both ends of the sockets read them."""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from fuzzing import Target, nested
from mutation import havoc, mutate_json

from spectrod.client.rpc_codec import decode_reply, messages_of
from spectrod.lib.errors import SpectrodError, WireError
from spectrod.wire.headers import LevelsHeader, TonesHeader, TransferHeader
from spectrod.wire.requests import METHODS, Reply, read_request
from spectrod.wire.schema import (
    BinsFrame,
    Frame,
    IntervalFrame,
    LevelsFrame,
    Meta,
    TonesFrame,
    TransferFrame,
    decode,
    encode,
)

_GOLDEN = Path(__file__).parents[2] / "data"
_SEPARATOR = b"\xff"
"""Separates the parts of a message: in no topic and no UTF-8, but possible in payloads."""

_HEADER = 1


def check_message(data: bytes) -> None:
    """Decode a message of the parts that the separator divides.

    The data after the header are tried as one part, and as two of which the second is twice as
    long, as the edges of bands are. A decoded message is encoded to bytes that decode to the same
    message, and all its attributes can be read without an exception.
    """
    parts = data.split(_SEPARATOR, 2)
    _check_parts(parts)
    if len(parts) == 3:
        third = len(parts[2]) // 3
        _check_parts([*parts[:2], parts[2][:third], parts[2][third:]])


def _check_parts(parts: Sequence[bytes]) -> None:
    try:
        message = decode(parts)
    except WireError:
        return
    again = decode(encode(message))
    assert encode(again) == encode(message), parts
    if isinstance(message, Frame):
        _ = message.f, message.source, message.channel
    elif isinstance(message, IntervalFrame):
        _ = [message[name] for name in message.header.quantities], message.channel
        if isinstance(message, BinsFrame):
            _ = [message.spectrum(name) for name in message.header.spectra], message.f
        if isinstance(message, TonesFrame):
            _ = [message.column(name) for name in message.header.columns]
    elif isinstance(message, Meta):
        _ = message.f
    else:
        _ = getattr(message, "source", None)


def check_request(data: bytes) -> None:
    """Read a request: the result has parameters, or is a reply that can be sent."""
    answer = read_request(data)
    if isinstance(answer, Reply):
        assert json.loads(msgspec.json.encode(answer))["ok"] is False, data
        return
    request, params = answer
    assert isinstance(params, METHODS[request.method].params), data


def check_reply(data: bytes) -> None:
    """Read a daemon's reply and the messages after it."""
    parts = data.split(_SEPARATOR)
    try:
        found = decode_reply(1, parts)
        if found is None:
            return
        messages, _ = messages_of(*found)
    except SpectrodError:  # an error that the daemon reports is raised like any other
        return
    assert [part for message in messages for part in message] == list(found[1])


def message_seeds() -> list[bytes]:
    """Take the golden messages."""
    made = []
    for path in sorted(_GOLDEN.glob("golden_v1*.json")):
        for golden in json.loads(path.read_text()):
            parts = [golden["topic"].encode(), golden["header"].encode()]
            if golden["payload_hex"] is not None:
                parts.append(bytes.fromhex(golden["payload_hex"] + golden.get("edges_hex", "")))
            made.append(_SEPARATOR.join(parts))
    return [*made, *map(_in_three_parts, (_levels(), _tones(), _transfer()))]


def _in_three_parts(message: IntervalFrame) -> bytes:
    """Encode a message, with a part of tables behind the values, which it is twice as long as."""
    topic, header, *payloads = encode(message)
    return _SEPARATOR.join([topic, header, b"".join(payloads)])


_INTERVAL = {
    "seq": 3,
    "epoch": 7,
    "t_utc_ns": 1_700_000_000_000_000_000,
    "t_mono_ns": 1000,
    "sample_index": 24_000,
    "fs": 8000.0,
    "interval_s": 1.0,
    "n_samples": 8000,
    "due_samples": 8000,
}
_FRAMES = {
    "shape": (1,),
    "ref": "0 dBFS = full-scale sine",
    "window": "hann",
    "win_length": 512,
    "nfft": 512,
    "hop": 256,
    "n_frames": 30,
}


def _levels() -> LevelsFrame:
    """Make a message of sound levels."""
    header = LevelsHeader(
        **_INTERVAL,
        quantities=("LAeq", "LUFS_S"),
        units=("dB SPL", "LUFS"),
        shape=(2,),
        ref="0 dB = 20 uPa",
        cal_id="M1",
        flags=("overload", "settling"),
    )
    return LevelsFrame("levels/mic/0/meter/", header, np.array([94.0, np.nan]))


def _tones() -> TonesFrame:
    """Make a message of tones, with a track."""
    header = TonesHeader(
        **_INTERVAL,
        **_FRAMES,
        quantities=("SINAD",),
        units=("dB",),
        band_hz=(0.0, 4000.0),
        n_tracks=1,
        columns=("id", "frequency"),
        column_units=("1", "Hz"),
    )
    tracks = np.array([[7.0, 440.5]])
    return TonesFrame("tones/mic/0/hum/", header, np.array([61.5]), tracks=tracks)


def _transfer() -> TransferFrame:
    """Make a message of a transfer function, with values of two bins."""
    header = TransferHeader(
        **_INTERVAL,
        **_FRAMES,
        quantities=("delay",),
        units=("s",),
        band_hz=(0.0, 31.25),
        reference="0",
        spectra=("coherence",),
        spectra_units=("1",),
        first_bin=1,
        n_bins=2,
    )
    spectra = np.array([[0.5, 0.75]])
    return TransferFrame("transfer/mic/1/room/", header, np.array([0.01]), spectra=spectra)


def request_seeds() -> list[bytes]:
    """Make a request of each method, with all of its parameters."""
    made = []
    for name, method in METHODS.items():
        params = {field.name: 1 for field in msgspec.structs.fields(method.params)}
        params |= dict.fromkeys(params.keys() & {"source", "product", "name", "topic"}, "a")
        params |= {key: {"a.b": 1} for key in params.keys() & {"changes", "settings"}}
        made.append(json.dumps({"v": 1, "id": 1, "method": name, "params": params}).encode())
    return made


def reply_seeds() -> list[bytes]:
    """Make replies of each kind: a result, messages, an error."""
    messages = {"epoch": 7, "parts": [2, 1], "more": True}
    error = {"code": "refused", "message": "hop=0: must be at least 1"}
    replies = [
        {"v": 1, "id": 1, "ok": True, "result": {"a": [1, 2.5, "x", None]}},
        {"v": 1, "id": 1, "ok": True, "result": messages},
        {"v": 1, "id": 1, "ok": False, "error": error},
        {"v": 1, "id": None, "ok": False, "error": error},
    ]
    made = [json.dumps(reply).encode() for reply in replies]
    return [made[0], made[1] + _SEPARATOR + b"a" + _SEPARATOR + b"b" + _SEPARATOR + b"c", *made[2:]]


def _mutate_part(number: int, data: bytes, rng: random.Random) -> bytes:
    """Change the JSON of one part."""
    parts = data.split(_SEPARATOR, number + 1)
    if len(parts) <= number or rng.random() < 0.1:
        return havoc(data, rng)
    parts[number] = mutate_json(parts[number], rng)
    return _SEPARATOR.join(parts)


def mutate_message(data: bytes, rng: random.Random) -> bytes:
    """Change the header."""
    return _mutate_part(_HEADER, data, rng)


def mutate_call(data: bytes, rng: random.Random) -> bytes:
    """Change the JSON at the start of a request or a reply."""
    return _mutate_part(0, data, rng)


def _nested_headers() -> Iterator[bytes]:
    for seed in message_seeds():
        parts = seed.split(_SEPARATOR, 2)
        for deep in nested():
            yield _SEPARATOR.join([parts[0], deep, *parts[2:]])
            yield _SEPARATOR.join([parts[0], parts[1][:-1] + b',"later":' + deep, *parts[2:]])


def _nested_requests() -> Iterator[bytes]:
    yield from nested()
    yield from nested(b'{"v":1,"id":1,"method":"set","params":{"changes":{"a":')
    yield from nested(b'{"v":1,"id":1,"ok":true,"result":')


TARGETS = {
    "message": Target(check_message, message_seeds, mutate_message, large=_nested_headers),
    "request": Target(check_request, request_seeds, mutate_call, large=_nested_requests),
    "reply": Target(check_reply, reply_seeds, mutate_call, large=_nested_requests),
}
