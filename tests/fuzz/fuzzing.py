"""Definition of a fuzz target, the limits that hold for every input, and the committed corpora.

A target calls one decoder as the program does. The decoder may refuse an input with the errors
that it documents; any other exception, a broken invariant, and an input that exceeds the limits
are defects. Nothing here needs Atheris.
"""

import atexit
import base64
import os
import random
import resource
import signal
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

TIME_MAX_S = 1.0
"""Processor time that one input may take [s]."""

MEMORY_MAX_BYTES = 100_000_000
"""Memory that one input may add to the process."""

LARGE_BYTES = 1_000_000
"""Length of large inputs; both limits also apply to them."""

CORPUS = Path(__file__).parent / "corpus"

_ADDRESS_SPACE_BYTES = 1 << 30
"""Memory that a fuzzing process may allocate beyond that at its start, touched or not."""

_CHECK_PERIOD_S = 0.2
_RUNS_A_READING = 64
_PAGE_BYTES = resource.getpagesize()
_STATUS_MAX_BYTES = 4096
_PEAK = b"VmHWM:"


class LimitError(BaseException):
    """An input took too long or too much memory; no handler of a decoder may catch it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A decoder under test.

    Attributes
    ----------
    check : callable
        Gives bytes to the decoder, and raises nothing unless there is a defect.
    seeds : callable
        Makes valid inputs.
    mutate : callable
        Makes another input of one, by the structure of the format.
    repair : callable
        Corrects checksums and lengths of an input that was changed at random, so that the decoder
        looks further.
    max_bytes : int
        Length of the inputs of a search.
    large : callable
        Makes inputs that claim or unpack to much more than they have, or nest deeply, beside those
        that ``large_inputs`` makes of the seeds.
    """

    check: Callable[[bytes], None]
    seeds: Callable[[], Sequence[bytes]]
    mutate: Callable[[bytes, random.Random], bytes]
    repair: Callable[[bytes], bytes] = bytes
    max_bytes: int = 8192
    large: Callable[[], Iterable[bytes]] = tuple


MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "riff": ("riff", ("spectrod.source.files.riff", "spectrod.source.files.wavfile")),
    "sound_file": ("sound_file", ("spectrod.source.files.soundfile", "spectrod.source.files.riff")),
    "sound_open": (
        "sound_file",
        ("spectrod.source.files.container", "spectrod.source.files.soundfile"),
    ),
    "mpeg": ("coded", ("spectrod.source.files.mpeg", "spectrod.source.files.soundfile")),
    "ogg": ("coded", ("spectrod.source.files.ogg", "spectrod.source.files.soundfile")),
    "flac_length": (
        "coded",
        ("spectrod.source.files.flac_length", "spectrod.formats.sound.flac_frames"),
    ),
    "triggered": ("coded", ("spectrod.source.files.triggered", "spectrod.source.files.container")),
    "speakers": ("coded", ("spectrod.source.files.speakers", "spectrod.source.files.riff")),
    "sound_stream": (
        "sound_file",
        ("spectrod.source.files.container", "spectrod.source.files.soundstream"),
    ),
    "bext": ("recorded_at", ("spectrod.source.files.recorded_at", "spectrod.source.files.riff")),
    "guano": ("recorded_at", ("spectrod.source.files.recorded_at", "spectrod.source.files.riff")),
    "time_in_text": ("recorded_at", ("spectrod.source.files.recorded_at",)),
    "sigmf": ("sigmf", ("spectrod.source.files.sigmf_meta",)),
    "wav_recovery": ("sound_recovery", ("spectrod.formats.sound",)),
    "flac_recovery": ("sound_recovery", ("spectrod.formats.sound",)),
    "values_recovery": ("values_recovery", ("spectrod.formats.values", "spectrod.formats.origin")),
    "values_rows": ("values_recovery", ("spectrod.formats.values",)),
    "segment": ("segment", ("spectrod.formats.segment", "spectrod.dsp.spectrum")),
    "segment_recovery": ("segment", ("spectrod.formats.segment", "spectrod.dsp.spectrum")),
    "png": ("picture", ("spectrod.apps.image",)),
    "pnm": ("picture", ("spectrod.apps.image",)),
    "pixel_map": ("picture", ("spectrod.formats.picture",)),
    "statistics_picture": ("picture", ("spectrod.formats.longterm.longterm_picture",)),
    "events": ("events", ("spectrod.formats.event_reading",)),
    "csv": ("export", ("spectrod.formats.export",)),
    "npz": ("export", ("spectrod.formats.export",)),
    "netcdf": ("stored_arrays", ("spectrod.formats.export",)),
    "netcdf_text": ("export", ("spectrod.formats.export",)),
    "zarr": ("stored_arrays", ("spectrod.formats.export",)),
    "zarr_root": ("export", ("spectrod.formats.export",)),
    "daily_file": ("stored_arrays", ("spectrod.apps.batch", "spectrod.formats.export")),
    "archive_store": ("stored_arrays", ("spectrod.apps.batch.store", "spectrod.formats.export")),
    "archive_content": ("archives", ("spectrod.apps.batch.pyramids",)),
    "flags": ("archives", ("spectrod.apps.batch.flags",)),
    "tuner_results": ("tuner_results", ("spectrod.fft.wisdom",)),
    "description": ("export", ("spectrod.formats.export", "spectrod.dsp.spectrum")),
    "levels": ("export", ("spectrod.formats.longterm",)),
    "archive_plan": ("archives", ("spectrod.apps.batch",)),
    "archive_record": ("archives", ("spectrod.apps.batch",)),
    "archive_job": ("archives", ("spectrod.apps.batch.job_file", "spectrod.config.toml_text")),
    "pyramid": ("pyramid", ("spectrod.formats.pyramid",)),
    "message": ("wire", ("spectrod.wire",)),
    "request": ("wire", ("spectrod.wire",)),
    "reply": ("wire", ("spectrod.client.rpc_codec",)),
    "public_key": ("keys", ("spectrod.wire.keys",)),
    "secret_key": ("keys", ("spectrod.wire.keys",)),
    "http_request": ("http", ("spectrod.daemon.monitoring.http_request",)),
    "toml": ("configuration", ("spectrod.config.toml_text",)),
    "config": (
        "configuration",
        ("spectrod.config.config", "spectrod.config.settings", "spectrod.wire.endpoint"),
    ),
    "settings": ("configuration", ("spectrod.config.config", "spectrod.config.settings")),
    "calibration": ("calibration", ("spectrod.dsp.calibration",)),
    "mask": ("mask", ("spectrod.measure.triggers",)),
    "response": ("calibration", ("spectrod.dsp.calibration",)),
    "web_head": ("web", ("spectrod.apps.web.gate", "spectrod.apps.web.page_origin", "h11")),
    "history_query": ("web", ("spectrod.apps.web.history.request",)),
    "page_text": ("web", ("spectrod.apps.web.page_view",)),
    "page_call": ("web", ("spectrod.apps.web.control_requests",)),
    "stored_rows": (
        "history",
        ("spectrod.apps.web.history.stored_rows", "spectrod.formats.segment"),
    ),
    "origin": ("history", ("spectrod.formats.origin",)),
    "page_of_links": ("stores", ("spectrod.source.store.html_links",)),
    "store_headers": ("stores", ("spectrod.source.store",)),
    "s3_list": ("stores", ("spectrod.source.store.objects", "botocore.parsers")),
    "gcs_answer": ("stores", ("spectrod.source.store.objects",)),
    "terminal": ("terminal", ("spectrod.apps.view.keyboard", "spectrod.apps.view.graphics")),
    "asound": (
        "machine",
        ("spectrod.source.soundcard.alsa_cards", "spectrod.source.soundcard.devices"),
    ),
    "devices": ("machine", ("spectrod.source.soundcard.devices",)),
    "zmtp_greeting": ("machine", ("spectrod.client.zmtp_probe",)),
    "shard": ("machine", ("spectrod.apps.batch.shard",)),
    "mqtt_packet": ("mqtt", ("spectrod.apps.mqtt.broker", "paho.mqtt.client")),
    "mqtt_device": ("mqtt", ("spectrod.apps.mqtt.kept_devices", "spectrod.lib.json_text")),
}
"""Module of each target, and the parts of the program whose coverage guides the search."""


def load(name: str) -> Target:
    """Import a target."""
    module = import_module(f"fuzz_targets.{MODULES[name][0]}")
    target: Target = module.TARGETS[name]
    return target


# ---- limits


class Limits:
    """Runs checks, and raises ``LimitError`` for one that exceeds a limit.

    Time is the processor time of the process; a timer ends what does not end by itself. Memory is
    what the process holds at its peak beyond what it held before the input.

    Clocks of processor time and memory cost some microseconds, so they are read once for
    ``_RUNS_A_READING`` inputs; an input then counts what the others of these cannot have taken.

    Attributes
    ----------
    slowest_s, largest_bytes : float, int
        The most that one input has taken: time by the wall clock [s], and memory.
    """

    def __init__(self) -> None:
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._status = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
        self._begin_s: float | None = None
        self._base_s, self._base_wall_s = time.process_time(), time.perf_counter()
        self._base_bytes = self._resident_bytes()
        self._peak_kb = self._read_peak_kb()
        self._n_runs = 0
        self.slowest_s = 0.0
        self.largest_bytes = 0
        signal.signal(signal.SIGPROF, self._interrupt)
        signal.setitimer(signal.ITIMER_PROF, _CHECK_PERIOD_S, _CHECK_PERIOD_S)
        # At its end Python restores the handler, and the signal would end the process.
        atexit.register(signal.setitimer, signal.ITIMER_PROF, 0.0)

    def run(self, check: Callable[[bytes], None], data: bytes) -> None:
        """Check one input within the limits."""
        if self._n_runs % _RUNS_A_READING == 0:
            self._read_clocks()
        self._n_runs += 1
        self._begin_s = time.perf_counter()
        try:
            check(data)
        finally:
            took_s = time.perf_counter() - self._begin_s
            if took_s > TIME_MAX_S:
                took_s = self._used_s(self._begin_s)
                self._read_clocks()
            self._begin_s = None
        self.slowest_s = max(self.slowest_s, took_s)
        if took_s > TIME_MAX_S:
            raise LimitError(f"{len(data)} bytes took {took_s:.2f} s: at most {TIME_MAX_S:g} s")
        self._check_memory(data)

    def close(self) -> None:
        """Stop the timer."""
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        os.close(self._statm)
        os.close(self._status)

    def _check_memory(self, data: bytes) -> None:
        peak_kb = self._read_peak_kb()
        if peak_kb == self._peak_kb:
            return
        self._peak_kb = peak_kb
        used = peak_kb * 1024 - self._base_bytes
        self._base_bytes = self._resident_bytes()
        self.largest_bytes = max(self.largest_bytes, used)
        if used > MEMORY_MAX_BYTES:
            raise LimitError(f"{len(data)} bytes took {used} bytes of memory: {MEMORY_MAX_BYTES}")

    def _read_clocks(self) -> None:
        self._base_bytes = self._resident_bytes()
        self._base_s, self._base_wall_s = time.process_time(), time.perf_counter()

    def _used_s(self, begin_s: float) -> float:
        """Return the least processor time that the input started then has taken [s]."""
        return time.process_time() - self._base_s - (begin_s - self._base_wall_s)

    def _resident_bytes(self) -> int:
        return int(os.pread(self._statm, 100, 0).split()[1]) * _PAGE_BYTES

    def _read_peak_kb(self) -> int:
        """Read the peak of this program; ``ru_maxrss`` includes that of the program before exec."""
        status = os.pread(self._status, _STATUS_MAX_BYTES, 0)
        return int(status[status.index(_PEAK) + len(_PEAK) :].split(maxsplit=1)[0])

    def _interrupt(self, *_: object) -> None:
        if self._begin_s is not None and self._used_s(self._begin_s) > TIME_MAX_S:
            raise LimitError(f"was stopped after {TIME_MAX_S:g} s")


def limit_address_space() -> None:
    """Make allocations far above the limit fail, for the whole process."""
    with Path("/proc/self/statm").open() as file:
        now_bytes = int(file.read().split()[0]) * _PAGE_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    n_bytes = now_bytes + _ADDRESS_SPACE_BYTES
    soft = n_bytes if hard == resource.RLIM_INFINITY else min(n_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# ---- inputs


def large_inputs(target: Target, seeds: Iterable[bytes]) -> Iterator[bytes]:
    """Make inputs of 1 MB from each seed by repetition and insertion, and those of the target."""
    for seed in seeds:
        if not seed or len(seed) >= LARGE_BYTES:
            continue
        yield target.repair((seed * (LARGE_BYTES // len(seed) + 1))[:LARGE_BYTES])
        for place in sorted({0, len(seed) // 4, len(seed) // 2, len(seed) * 3 // 4, len(seed)}):
            for filling in _fillings(seed, place):
                n_more = LARGE_BYTES - len(seed)
                stretch = (filling * (n_more // len(filling) + 1))[:n_more]
                yield target.repair(seed[:place] + stretch + seed[place:])
    yield from target.large()


def _fillings(seed: bytes, place: int) -> Iterator[bytes]:
    yield from (b"\0", b"\xff", b" ", b"9", b"[")
    yield seed[max(0, place - 16) : place + 16]


def nested(begin: bytes = b"", end: bytes = b"") -> Iterator[bytes]:
    """Make texts with endless open brackets between a start and an end."""
    for opening in (b"[", b'{"a":', b"{a="):
        for n_bytes in (2_000, 15_000, LARGE_BYTES - 1000):
            yield begin + opening * (n_bytes // len(opening)) + end


class Scratch:
    """Files of one process for decoders that take paths; in memory where the system has room."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
        is_free = "TMPDIR" not in os.environ and memory.is_dir()
        self._kept = tempfile.TemporaryDirectory(
            prefix="spectrod-fuzz-", dir=memory if is_free else None
        )
        self.folder = Path(self._kept.name)
        self._open: dict[str, tuple[Path, int]] = {}

    def put(self, name: str, data: bytes) -> Path:
        """Write into a file that stays open, which is faster; the decoder must not remove it."""
        if name not in self._open:
            path = self.folder / name
            self._open[name] = path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        path, fd = self._open[name]
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
        return path

    def create(self, name: str, data: bytes) -> Path:
        """Write a new file in place of one with the same name."""
        path = self.folder / name
        path.write_bytes(data)
        return path

    def clear(self, *names: str) -> None:
        """Remove files, if they are there; ``put`` makes new ones of their names."""
        for name in names:
            if name in self._open:
                os.close(self._open.pop(name)[1])
            (self.folder / name).unlink(missing_ok=True)


# ---- committed corpora


def corpus_of(name: str) -> dict[str, bytes]:
    """Read the committed inputs of a target, by their names.

    A line is ``NAME hex DIGITS`` or ``NAME zlib BASE64``; others begin with ``#``.

    Raises
    ------
    ValueError
        If a line is neither, or two have one name.
    """
    path = CORPUS / f"{name}.txt"
    found: dict[str, bytes] = {}
    for line in path.read_text("ascii").splitlines() if path.exists() else ():
        if not line or line.startswith("#"):
            continue
        title, form, *text = line.split(" ")
        if title in found or form not in ("hex", "zlib") or len(text) != 1:
            raise ValueError(f"{path.name}: {line[:60]}: must be NAME hex|zlib TEXT")
        found[title] = _read(form, text[0])
    return found


def corpus_line(title: str, data: bytes) -> str:
    """Encode an input as a line of a corpus, in the shorter form."""
    digits = data.hex()
    packed = base64.b64encode(zlib.compress(data, 9)).decode()
    return f"{title} hex {digits}" if len(digits) <= len(packed) else f"{title} zlib {packed}"


def _read(form: str, text: str) -> bytes:
    return bytes.fromhex(text) if form == "hex" else zlib.decompress(base64.b64decode(text))
