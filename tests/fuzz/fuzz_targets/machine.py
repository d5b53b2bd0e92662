"""What the machine and its neighbours say: sound cards, devices, greetings, variables of jobs."""

import contextlib
import random
from pathlib import Path
from typing import Self

from fuzzing import Scratch, Target
from mutation import havoc, mutate_text

from spectrod.apps.batch.shard import SHARDS_MAX, parse_shard
from spectrod.client import zmtp_probe
from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.source.soundcard.alsa_cards import open_captures, read_card
from spectrod.source.soundcard.devices import (
    _look_at,
    choose_input,
    describe_inputs,
    parse_selector,
)
from spectrod.wire.endpoint import parse_remote

_SEPARATOR = b"\0"
_SCRATCH = Scratch()
_CARD = "proc/asound/card0/pcm0c"
_FILES = (
    "proc/asound/cards", f"{_CARD}/info", f"{_CARD}/sub0/status", f"{_CARD}/sub0/hw_params",
    "sys/class/sound/card0/id", "usb/1-1.2/serial", "usb/1-1.2/idVendor",
)  # fmt: skip
_WORDS = (
    *(b"state: RUNNING", b"rate: 48000 (48000/1)", b"channels: 2", b"format: S16_LE", b"closed"),
    *(b" 0 [USB            ]: USB-Audio - ", b"owner_pid   : 7", b"name: ", b":", b"9" * 5000),
    *("٣".encode(), b"\xff", b"\x1b[31m", b"(hw:0,0)", b"000", b"-1", b"\r", b"\x85", b"\0"),
)
_DEVICE_WORDS = (
    *(b"(hw:0,0)", b" (hw:", b"9" * 5000, b"api=", b"name=", b"card=", b"device=1", b"usb=", b","),
    *(
        b"serial=x",
        b"=",
        b"\xe2\x80\xae",
        b"\x1b",
        b"\xff",
        "٣".encode(),
        b"ALSA",
        b"USB mic",
        b"  ",
    ),
)
_VARIABLES = (
    "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT", "JOB_COMPLETION_INDEX",
)  # fmt: skip
_SHARD_WORDS = (
    *(b"slurm", b"kubernetes/", b"1/3", b"/", b"0", b"-1", b"100000", b"9" * 5000, "٣".encode()),
    *("²".encode(), b" 1", b"1_0", b"+1", b"1.0", b"", b"\xff", b"kubernetes", b"slurm/3"),
)


def _make_folders() -> None:
    for name in _FILES:
        (_SCRATCH.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (_SCRATCH.folder / "sys/class/sound/card0/device").symlink_to("../../../../usb/1-1.2")


_make_folders()


def _parts(data: bytes, n: int) -> list[bytes]:
    return (data.split(_SEPARATOR) + [b""] * n)[:n]


def check_asound(data: bytes) -> None:
    """Read the files of a card that a program has open; numbers are not negative."""
    for name, content in zip(_FILES, _parts(data, len(_FILES)), strict=True):
        _SCRATCH.put(name, content)
    for capture in open_captures(_SCRATCH.folder / "proc"):
        assert capture.name.isprintable()
        assert capture.format.isprintable()
        assert min(capture.channels, capture.samplerate, capture.pid) >= 0
        inputs = describe_inputs([], _SCRATCH.folder / "sys", [capture])
        assert [one.name for one in inputs] == [capture.name]
    card = read_card(0, _SCRATCH.folder / "sys")
    assert card.id.isprintable()
    assert card.serial.isprintable()


def check_devices(data: bytes) -> None:
    """Describe inputs with the names of a driver; each is found again by its name to configure."""
    texts = [part.decode("utf-8", "surrogateescape") for part in _parts(data, 4)]
    scanned = [
        {
            "index": k, "name": name, "host_api": api, "channels": 2, "samplerate": 48e3,
            "is_default": not k,
        }
        for k, (name, api) in enumerate((texts[:2], (texts[2], "ALSA")))
    ]  # fmt: skip
    inputs = describe_inputs(scanned, Path("/nowhere"))
    for one in inputs:
        assert one.name.isprintable()
        selector = parse_selector(one.uri.removeprefix("soundcard:"))
        assert choose_input(selector, inputs) == one
        assert _look_at(one, {}, None).device == one
    with contextlib.suppress(ConfigError, UnavailableError):
        choose_input(parse_selector(texts[3]), inputs)


class _Peer:
    """A connection to a peer that sends some bytes, and closes."""

    def __init__(self, data: bytes) -> None:
        self._left = data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def sendall(self, _: bytes) -> None:
        """Take the start of the greeting."""

    def settimeout(self, _: float) -> None:
        """Wait for nothing."""

    def recv(self, n_bytes: int) -> bytes:
        """Return what comes next, a few bytes at a time."""
        n_bytes = min(n_bytes, 17)
        part, self._left = self._left[:n_bytes], self._left[n_bytes:]
        return part


_ENDPOINT = parse_remote("tcp://127.0.0.1:5556")


def check_greeting(data: bytes) -> None:
    """Read what an endpoint says of itself: a mechanism, a kind of one command, or nothing."""
    connect, zmtp_probe._connect = zmtp_probe._connect, lambda *_: _Peer(data)
    try:
        found = zmtp_probe.read_peer(_ENDPOINT, 1.0)
    finally:
        zmtp_probe._connect = connect
    if found is not None:
        assert len(found.mechanism) <= 20
        assert len(found.kind) <= 255
        assert len(data) >= 64


def check_shard(data: bytes) -> None:
    """Parse a shard from variables of a scheduler: it is one of those there are, or refused."""
    text, *values = (part.decode("utf-8", "surrogateescape") for part in _parts(data, 5))
    try:
        shard = parse_shard(text, dict(zip(_VARIABLES, values, strict=True)))
    except ConfigError:
        return
    assert 1 <= shard.number <= shard.total <= SHARDS_MAX
    assert len(shard.units(range(10))) <= 10


def asound_seeds() -> list[bytes]:
    """Make the files of a USB card in use, and of one that is not."""
    cards = b" 0 [Mic            ]: USB-Audio - USB Mic\n                      A USB Mic at usb-1"
    status = b"state: RUNNING\nowner_pid   : 77\n"
    hardware = b"access: RW_INTERLEAVED\nformat: S24_3LE\nchannels: 2\nrate: 48000 (48000/1)\n"
    used = (cards, b"card: 0\nname: USB Audio\n", status, hardware, b"Mic\n", b"A1B2\n", b"0d8c\n")
    return [_SEPARATOR.join(used), _SEPARATOR.join((cards, b"", b"closed\n", b"closed\n", b"Mic"))]


def device_seeds() -> list[bytes]:
    """Make names of two inputs, and what is asked for."""
    one = b"USB Audio: - (hw:1,0)", b"ALSA", b"HDA Intel PCH: ALC (hw:0,0)", b"api=ALSA,name=USB"
    return [_SEPARATOR.join(one), _SEPARATOR.join((b"Mic, name=x", b"Core Audio", b"Mic", b"0"))]


def greeting_seeds() -> list[bytes]:
    """Make greetings of ZMTP 3.1 with and without keys, and one with the command READY."""
    head = b"\xff" + bytes(8) + b"\x7f\x03\x01"
    plain, *others = (
        head + name.ljust(20, b"\0") + bytes(32) for name in (b"NULL", b"CURVE", b"PLAIN")
    )
    ready = b"\x05READY\x0bSocket-Type" + (6).to_bytes(4, "big") + b"ROUTER"
    return [plain, *others, plain + bytes([4, len(ready)]) + ready]


def shard_seeds() -> list[bytes]:
    """Make the variables of an array of Slurm and of an indexed job."""
    slurm = b"slurm", b"4", b"1", b"8", b""
    return [_SEPARATOR.join(slurm), _SEPARATOR.join((b"kubernetes/7", b"", b"", b"", b"2")), b"2/3"]


def _mutated(data: bytes, rng: random.Random, words: tuple[bytes, ...]) -> bytes:
    if rng.random() < 0.2:
        return havoc(data, rng)
    parts = data.split(_SEPARATOR)
    k = rng.randrange(len(parts))
    parts[k] = mutate_text(parts[k], rng, words)
    return _SEPARATOR.join(parts)


def mutate_asound(data: bytes, rng: random.Random) -> bytes:
    """Change words of one of the files, and bytes."""
    return _mutated(data, rng, _WORDS)


def mutate_devices(data: bytes, rng: random.Random) -> bytes:
    """Change words of one of the names, and bytes."""
    return _mutated(data, rng, _DEVICE_WORDS)


def mutate_shard(data: bytes, rng: random.Random) -> bytes:
    """Change words of one of the variables, and bytes."""
    return _mutated(data, rng, _SHARD_WORDS)


TARGETS = {
    "asound": Target(check_asound, asound_seeds, mutate_asound),
    "devices": Target(check_devices, device_seeds, mutate_devices),
    "zmtp_greeting": Target(check_greeting, greeting_seeds, havoc),
    "shard": Target(check_shard, shard_seeds, mutate_shard),
}
