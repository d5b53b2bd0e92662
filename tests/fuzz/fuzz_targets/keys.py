"""Files of keys: public ones, which anybody may write, and secret ones."""

import random
from collections.abc import Iterator

from fuzzing import Scratch, Target, nested
from mutation import havoc, mutate_text

from spectrod.lib.errors import ConfigError
from spectrod.wire.keys import read_folder, read_public, read_secret

_SCRATCH = Scratch()
_PUBLIC = b"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
_SECRET = b"JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"
"""The pair of ZeroMQ's documentation, zmq_curve(7)."""

_WORDS = (
    *(b"name = ", b"right = ", b"public_key = ", b"secret_key = ", b"comment = ", b'"', b"'''"),
    *(b'"read"', b'"control"', b"true", b"1", b"[[a]]", b"[a]", b"{}", b"\\ud800", b"\\u0000"),
    *(b"\xff", b"\r", b"1979-05-27T07:32:00Z", b"9" * 50, b"#", b'"""', b"a.b = 1", b"\x1b[31m"),
    *(_PUBLIC, _SECRET, b" ", b"~", b"\\", b"nan", b"-inf", b"0x1F"),
)


def check_public(data: bytes) -> None:
    """Read a public key alone and in a folder."""
    path = _SCRATCH.put("input.pub", data)
    try:
        key = read_public(path)
    except ConfigError as error:
        _check_text(str(error), data)
        return
    assert len(key.key) == 40
    assert key.right in ("read", "control")
    assert read_folder(_SCRATCH.folder) == [key]


def check_secret(data: bytes) -> None:
    """Read a secret key, and check that no text shows it."""
    path = _SCRATCH.put("input.key", data)
    path.chmod(0o600)
    try:
        pair = read_secret(path)
    except ConfigError as error:
        _check_text(str(error), data)
        return
    assert len(pair.key) == len(pair.secret) == 40
    assert pair.secret.decode() not in repr(pair)


def _check_text(text: str, data: bytes) -> None:
    """Check that an error is one line and shows no secret from its proper place."""
    assert "\n" not in text
    if data.count(_SECRET) == 1 and b'secret_key = "' + _SECRET in data:
        assert _SECRET.decode() not in text


def public_seeds() -> list[bytes]:
    """Make a key of each right by hand, as keys new makes random ones."""
    head = b'# spectrod\nname = "alice"\n'
    key = b'public_key = "' + _PUBLIC + b'"\n'
    return [
        head + b'right = "read"\n' + key + b'comment = "of a laptop"\n',
        head + key,
        head + b'right = "control"\n' + key,
    ]


def secret_seeds() -> list[bytes]:
    """Make a secret key."""
    halves = b'public_key = "' + _PUBLIC + b'"\nsecret_key = "' + _SECRET + b'"\n'
    return [b'name = "alice"\n' + halves]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change words of the TOML, and bytes."""
    return havoc(data, rng) if rng.random() < 0.3 else mutate_text(data, rng, _WORDS)


def _nested() -> Iterator[bytes]:
    return nested(b"name = ")


TARGETS = {
    "public_key": Target(check_public, public_seeds, mutate, max_bytes=2048, large=_nested),
    "secret_key": Target(check_secret, secret_seeds, mutate, max_bytes=2048, large=_nested),
}
