"""Search for bytes that a decoder of messages or requests answers with anything but its own error.

    python benchmarks/fuzz_decoder.py [message | request] [--runs N] [--seed N] [--corpus DIR]

Coverage-guided, by Atheris (``pip install --group fuzz``; CPython 3.11 and x86-64 have a wheel).
It begins with the golden messages, or with one request of each method. Half of the mutations
change the JSON of a header or of a request (a value for an odd one, a key more, a key less,
nesting), as bytes that are changed at random hardly ever get past a JSON parser; the others are
libFuzzer's own. What is found ends the run with a traceback and is kept in ``crash-*``.

What holds of every input:

- ``decode`` returns a message or raises WireError;
- a message that was read is written to bytes that are read as the same message, to the last bit;
- what can be asked of it (axis, source, channel, state) raises nothing;
- ``read_request`` returns a request and its parameters, or a reply that can be sent.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["spectrod.wire"]):
    import msgspec

    from spectrod.errors import WireError
    from spectrod.wire.requests import METHODS, Reply, read_request
    from spectrod.wire.schema import Frame, Meta, decode, encode

_GOLDEN = Path(__file__).parents[1] / "tests/data"
_SEPARATOR = b"\xff"  # in no topic and in no UTF-8; in payloads it may be
_MAX_INPUT_BYTES = 8192
_DEEP = 5_000

_ODD: Sequence[Any] = (
    *(0, -1, 1, 2, 3, 64, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400),
    *(-0.0, 0.5, 1e-320, 1e308, float("inf"), float("nan")),
    *("", "a" * 300, "\0", "\N{GRINNING FACE}", "/", "<f4", "<f8", "|O", ">f4"),
    *(None, True, False, [], {}, [[]], [0], [33], [33, 1], [2**63], [-1], ["0"], {"a": {"a": []}}),
)


@atheris.instrument_func
def check_message(data: bytes) -> None:
    """Hold what is true of every message, given as its parts with a separator between them.

    What follows the header is tried as one part, and as two of which the second is twice as long,
    as the edges of bands are.
    """
    parts = data.split(_SEPARATOR, 2)
    _check_parts(parts)
    if len(parts) == 3:
        third = len(parts[2]) // 3
        _check_parts([*parts[:2], parts[2][:third], parts[2][third:]])


@atheris.instrument_func
def _check_parts(parts: list[bytes]) -> None:
    try:
        message = decode(parts)
    except WireError:
        return
    again = decode(encode(message))
    assert encode(again) == encode(message), parts
    if isinstance(message, Frame):
        _ = message.f, message.source, message.channel
    elif isinstance(message, Meta):
        _ = message.f
    else:
        _ = getattr(message, "source", None)


@atheris.instrument_func
def check_request(data: bytes) -> None:
    """Hold what is true of every request."""
    answer = read_request(data)
    if isinstance(answer, Reply):
        assert json.loads(msgspec.json.encode(answer))["ok"] is False, data
        return
    request, params = answer
    assert isinstance(params, METHODS[request.method].params), data


def message_seeds() -> list[bytes]:
    """Return the golden messages."""
    seeds = []
    for path in sorted(_GOLDEN.glob("golden_v1*.json")):
        for golden in json.loads(path.read_text()):
            parts = [golden["topic"].encode(), golden["header"].encode()]
            if golden["payload_hex"] is not None:
                parts.append(bytes.fromhex(golden["payload_hex"] + golden.get("edges_hex", "")))
            seeds.append(_SEPARATOR.join(parts))
    return seeds


def request_seeds() -> list[bytes]:
    """Return a request of each method, with all of its parameters."""
    seeds = []
    for name, method in METHODS.items():
        params = {field.name: 1 for field in msgspec.structs.fields(method.params)}
        params |= dict.fromkeys(params.keys() & {"source", "product", "name", "topic"}, "a")
        params |= {key: {"a.b": 1} for key in params.keys() & {"changes", "settings"}}
        seeds.append(json.dumps({"v": 1, "id": 1, "method": name, "params": params}).encode())
    return seeds


def mutate_json(text: bytes, rng: random.Random) -> bytes:
    """Change one thing in a JSON object; what is none is left as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, dict) or not value:
        return text
    inside = value.get("params")
    table = inside if isinstance(inside, dict) and inside and rng.random() < 0.6 else value
    key = rng.choice(list(table))
    kind = rng.randrange(5)
    if kind == 0:
        del table[key]
    elif kind == 1:
        table[str(rng.choice(_ODD))] = rng.choice(_ODD)
    elif kind == 2:
        table[key] = table[rng.choice(list(table))]
    else:
        table[key] = rng.choice(_ODD)
    written = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if rng.random() < 0.001:
        deep = rng.choice((b"[", b'{"a":')) * rng.randrange(_DEEP)
        written = written[:-1] + b',"deep":' + deep
    return written


def mutator(seeds: Sequence[bytes], part: int | None) -> Callable[[bytes, int, int], bytes]:
    """Return a mutator of inputs whose JSON is the part of that number; None: all of it.

    The corpus knows coverage of Python only and so forgets what msgspec tells apart: each third
    mutation begins with a seed instead.
    """

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)  # noqa: S311 - reproducible, no secret
        if rng.random() < 0.3:
            data = rng.choice(seeds)
        if rng.random() < 0.5:
            return bytes(atheris.Mutate(data, max_size))
        if part is None:
            return mutate_json(data, rng)[:max_size]
        parts = data.split(_SEPARATOR, 2)
        if len(parts) > part:
            parts[part] = mutate_json(parts[part], rng)
        return _SEPARATOR.join(parts)[:max_size]

    return mutate


_TARGETS = {
    "message": (check_message, message_seeds, 1),
    "request": (check_request, request_seeds, None),
}


def main() -> None:
    """Fuzz one of the decoders; ends with exit code 0 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", nargs="?", default="message", choices=_TARGETS)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", metavar="DIR", help="kept; without it a temporary folder")
    args = parser.parse_args()
    check, make_seeds, part = _TARGETS[args.target]
    seeds = make_seeds()
    for seed in seeds:
        check(seed)
    # libFuzzer ends the process itself, so a temporary folder is left to the system.
    corpus = Path(args.corpus or tempfile.mkdtemp(prefix="spectrod-fuzz-"))
    corpus.mkdir(parents=True, exist_ok=True)
    for k, seed in enumerate(seeds):
        (corpus / f"seed-{k}").write_bytes(seed)
    options = [
        f"-runs={args.runs}",
        f"-seed={args.seed}",
        f"-max_len={_MAX_INPUT_BYTES}",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], check, custom_mutator=mutator(seeds, part))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
