"""The tuner's saved results: one file a device, which a person can read, delete or ship.

Looked for in the user's data folder (``$XDG_DATA_HOME/spectrod/wisdom``), then among the files that
come with the package. A file is valid for the driver that it was measured with, a result for the
kernels of its own family: a change of another family's costs it nothing.
"""

import fcntl
import hashlib
import logging
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from spectrod.fft.stage import Key, Precision, Spec, TunedKind
from spectrod.lib.errors import StorageError
from spectrod.lib.json_text import decode_json
from spectrod.lib.regular_files import read_regular
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.source import kernel_dir

ANY_DRIVER = "*"
"""In a file that is shipped for a device whatever its driver's version."""

FILE_BYTES_MAX = 1 << 20
"""Largest file [bytes]: those of thousands of results."""

SHIPPED = Path(__file__).with_name("wisdom")
"""Folder of the files that come with the package."""

_SHARED = ("common.clh", "dft.clh")
_FUSED = ("dft_fused.clh",)
_ONE_PASS = (*_SHARED, *_FUSED, "fft_local*.cl*")
# Of families that are made of stages of any: all.
_ALL_KERNELS = (*_SHARED, *_FUSED, "fft_*.cl*")
_OF_FRAMES = ("average.clh", "decibels.clh", "stft_places.clh", "stft_samples.clh")
_VALUES = ("stft_values.clh",)
_KERNELS = {
    "local": _ONE_PASS,
    "multipass": _ONE_PASS,
    "simd": (*_SHARED, "fft_simd*.cl*"),
    "stft-local": (
        *_SHARED,
        *_FUSED,
        *_OF_FRAMES,
        "fft_local_pa*.clh",
        *_VALUES,
        "stft_local.cl",
    ),
    "stft-multipass": (*_ONE_PASS, *_OF_FRAMES[1:], *_VALUES, "stft_multipass_*.cl"),
    "stft-simd": (*_SHARED, *_OF_FRAMES, "fft_simd_[ps]*.clh", "stft_simd*.cl*"),
    "stft-general": (*_ALL_KERNELS, *_OF_FRAMES, "stft_[bfop]*.cl*"),
}
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)

_log = logging.getLogger(__name__)


class Result(Struct, frozen=True, kw_only=True):
    """The winner of one transform or length of frames.

    Attributes
    ----------
    n, kind, precision
        The ``key`` of a ``Spec``.
    family : str
        Name of the kernel family.
    params : dict
        Names and values of its parameters, for ``Family.load``.
    gb_per_s, untuned_gb_per_s : float
        One read and one write of the data over the time, tuned and untuned [GB/s]; the latter is 0
        where no untuned choice was timed.
    relative_l2 : float
        Error against float64 or long double [1].
    kernels : str
        ``kernel_version`` of the family when it was measured.
    """

    n: int
    kind: TunedKind
    precision: Precision
    family: str
    params: dict[str, Any]
    gb_per_s: float
    untuned_gb_per_s: float
    relative_l2: float
    kernels: str

    @property
    def key(self) -> Key:
        """What it is the winner of."""
        return self.n, self.kind, self.precision


class Wisdom(Struct, frozen=True, kw_only=True):
    """Content of a file.

    Attributes
    ----------
    format : int
        Version of this layout.
    platform, device, driver : str
        What was measured; the driver may be ``ANY_DRIVER``.
    results : tuple of Result
        One a transform.
    """

    format: Literal[2] = 2
    platform: str
    device: str
    driver: str
    results: tuple[Result, ...]


class _NotValidError(ValueError):
    """Why a file is ignored."""


def lookup(device: DeviceInfo, spec: Spec) -> tuple[str, Mapping[str, Any]] | None:
    """Find the saved winner; files are read once a process.

    Parameters
    ----------
    device : DeviceInfo
        It and its driver must be those of the file.
    spec : Spec
        Its key alone matters: neither a transform's direction nor what is made of frames.

    Returns
    -------
    winner : (str, mapping) or None
        Name of the family, and what its ``load`` takes. A file that is damaged, or valid for
        something else, counts as none, as does a result for other kernels; the log says so once.
    """
    result = _known(device.platform, device.name, device.driver).get(spec.key)
    return (result.family, result.params) if result else None


def results(device: DeviceInfo) -> list[Result]:
    """Every saved winner that is valid for a device, sorted by transform."""
    known = _known(device.platform, device.name, device.driver)
    return [known[key] for key in sorted(known, key=lambda key: (key[2], key[1], key[0]))]


def save(device: DeviceInfo, new: Iterable[Result], path: Path | None = None) -> Path:
    """Add results to a device's file; those of the same transforms are replaced.

    Results in the file that are no longer valid are dropped. A reader sees the file as it was
    before or as it is afterwards, also after a power failure; a second writer waits.

    Parameters
    ----------
    device : DeviceInfo
        What was measured.
    new : iterable of Result
        Its winners.
    path : Path, optional
        By default ``file_for(device)``.

    Returns
    -------
    path : Path
        Of the file.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    path = path or file_for(device)
    try:
        with _locked_folder(path):
            merged = _valid_results(path, device.platform, device.name, device.driver)
            merged |= {result.key: result for result in new}
            _replace(path, _to_json(device, [merged[key] for key in sorted(merged)]))
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    _known.cache_clear()
    return path


def forget(device: DeviceInfo) -> bool:
    """Delete the user's file of a device; False if there was none.

    Raises
    ------
    StorageError
        If it cannot be deleted.
    """
    path = file_for(device)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    _known.cache_clear()
    return True


def file_for(device: DeviceInfo) -> Path:
    """Path of the user's file of a device, which need not exist.

    Raises
    ------
    StorageError
        If there is neither ``$XDG_DATA_HOME`` nor a home folder.
    """
    folder = _user_folder()
    if folder is None:
        raise StorageError("no folder for tuning results: neither HOME nor XDG_DATA_HOME is set")
    return folder / _file_name(device.platform, device.name)


@lru_cache
def kernel_version(family: str) -> str:
    """Hash of the code of a family's kernels; comments do not count.

    Parameters
    ----------
    family : str
        Its name; of one that is not known, all FFT kernels count.
    """
    folder, patterns = kernel_dir(), _KERNELS.get(family, _ALL_KERNELS)
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        code = b" ".join(_COMMENT.sub(b"", path.read_bytes()).split())
        digest.update(path.name.encode() + b"\0" + code + b"\0")
    return digest.hexdigest()[:16]


@lru_cache
def _known(platform: str, name: str, driver: str) -> Mapping[Key, Result]:
    """Merge the valid results of a device's files; the user's own come before the shipped ones."""
    folders = [SHIPPED, _user_folder()]
    merged: dict[Key, Result] = {}
    for folder in filter(None, folders):
        path = folder / _file_name(platform, name)
        merged |= _valid_results(path, platform, name, driver)
    return merged


def _valid_results(path: Path, platform: str, name: str, driver: str) -> dict[Key, Result]:
    try:
        wisdom = decode_json(read_regular(path, FILE_BYTES_MAX), Wisdom)
        _check(wisdom, platform, name, driver)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        _log.warning("%s is ignored: %s; run spectrod tune again", path, reason)
        return {}
    return {result.key: result for result in _not_stale(path, wisdom.results)}


def _not_stale(path: Path, found: tuple[Result, ...]) -> list[Result]:
    """Leave out what was measured with other kernels than there are."""
    kept = [result for result in found if result.kernels == kernel_version(result.family)]
    if len(kept) < len(found):
        _log.warning(
            "%s: %d of %d results are ignored: they are of other kernels than this version of "
            "spectrod has; run spectrod tune again",
            *(path, len(found) - len(kept), len(found)),
        )
    return kept


def _check(wisdom: Wisdom, platform: str, name: str, driver: str) -> None:
    if (wisdom.platform, wisdom.device) != (platform, name):
        raise _NotValidError(f"it is of {wisdom.platform}/{wisdom.device}")
    if wisdom.driver not in (driver, ANY_DRIVER):
        raise _NotValidError(f"it is for driver {wisdom.driver}, but the driver is {driver}")


def _user_folder() -> Path | None:
    """Where a user's data lie; None for a service without a home."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    # The XDG specification has relative paths ignored.
    if named.is_absolute():
        return named / "spectrod" / "wisdom"
    try:
        return Path.home() / ".local" / "share" / "spectrod" / "wisdom"
    except RuntimeError:
        return None


def _file_name(platform: str, name: str) -> str:
    words = re.findall(r"[a-z0-9.]+", f"{platform} {name}".lower())
    return "-".join(words) + ".json"


def _to_json(device: DeviceInfo, results: list[Result]) -> bytes:
    """Write one result a line, which a person can read and a diff can show."""
    wisdom = Wisdom(platform=device.platform, device=device.name, driver=device.driver, results=())
    head = msgspec.json.format(msgspec.json.encode(wisdom), indent=1)
    lines = b",\n".join(b"  " + msgspec.json.encode(result) for result in results)
    return head.replace(b'"results": []', b'"results": [\n' + lines + b"\n ]") + b"\n"


@contextmanager
def _locked_folder(path: Path) -> Iterator[None]:
    """Make a file's folder, and let one process at a time change files in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it."""
    part = path.with_name(f".{path.name}-{secrets.token_hex(6)}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
