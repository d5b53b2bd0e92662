"""Recordings in other formats: CSV, NPZ, NetCDF and HDF5, Zarr, level statistics.

Here the parts that spectrod interprets are mutated: attributes, names, shapes and element types.
What libraries decode, HDF5's structures and Zarr's chunks, is mutated by ``stored_arrays``.
"""

import io
import random
import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from fuzzing import MEMORY_MAX_BYTES, Scratch, Target, nested
from mutation import ODD_INTEGERS, havoc, mutate_json, mutate_text

from spectrod.formats.description import RowReader
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.grid import GridReader
from spectrod.formats.longterm.data import Span, read_npz, write_npz
from spectrod.formats.longterm.statistics import LevelStatistics
from spectrod.lib.errors import InputError, StorageError
from spectrod.recording.inputs import open_recording
from spectrod.recording.output_plan import make_data

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from segment_rows import describe, make_batch, make_spec

_SCRATCH = Scratch()
_MARK = b"\xffAND\xff"
"""Between the description and the engines, in inputs that are attributes."""

_ROW_MIN_BYTES = 20
_CSV_WORDS = (
    *(b"# engine: ", b"# end: ", b"# spectrod_description: ", b",", b"#", b"nan", b"inf", b"1e999"),
    *(b"-1", b"9223372036854775808", b"2026-11-20T21:47:03.123456789Z", b"0001-01-01T00:00:00"),
    *(b'"', b"{}", b"[]", b"\xff", b"\0", b"\r", b"1_000", b"0x1", b"\xd9\xa1", b"1.5", b" "),
)


def _read(reader: RowReader) -> int:
    """Read all rows; return their number."""
    n_rows = 0
    with closing(reader):
        spec = reader.description.spec
        for batch in reader.batches():
            assert batch.values.shape[1:] == (spec.n_signals, spec.n_values)
            n_rows += batch.n_frames
    return n_rows


def _check_file(name: str, data: bytes) -> None:
    path = _SCRATCH.put(name, data)
    try:
        _read(open_recording(path))
    except (InputError, StorageError):
        return


def check_csv(data: bytes) -> None:
    """Read a CSV file."""
    path = _SCRATCH.put("input.csv", data)
    try:
        n_rows = _read(open_recording(path))
    except (InputError, StorageError):
        return
    assert n_rows * _ROW_MIN_BYTES <= len(data)


def check_npz(data: bytes) -> None:
    """Read an NPZ file."""
    _check_file("input.npz", data)


def check_levels(data: bytes) -> None:
    """Read level statistics, and ask for a level."""
    path = _SCRATCH.put("levels.npz", data)
    try:
        statistics = read_npz(path)
    except InputError:
        return
    assert statistics.n_rows >= 0
    assert statistics.exceeded(50).shape == statistics.mean.shape


# ---- attributes


def check_description(data: bytes) -> None:
    """Read the attributes of a file that holds no arrays."""
    description, _, engines = data.partition(_MARK)
    shelf = _Attributes(description.decode("utf-8", "replace"), engines.decode("utf-8", "replace"))
    try:
        reader = GridReader(Path("input.nc"), lambda _: shelf)
        assert reader.description.spec.n_values >= 1
        _read(reader)
    except StorageError:
        return


class _Attributes:
    """A file with attributes alone; see ``spectrod.formats.export.grid.Shelf``."""

    def __init__(self, description: str, engines: str) -> None:
        self._texts = {"spectrod_description": description, "spectrod_engines": engines}

    def text(self, name: str) -> str:
        return self._texts[name]

    def form(self, name: str) -> Any:
        raise KeyError(name)

    def read(self, name: str, first: int, past: int) -> Any:
        raise KeyError(name, first, past)

    def close(self) -> None:
        pass


def check_netcdf(data: bytes) -> None:
    """Read a NetCDF file with these attributes, and the arrays of a valid one."""
    description, _, engines = data.partition(_MARK)
    out = io.BytesIO(_template(".nc"))
    with h5py.File(out, "r+") as file:
        file.attrs["spectrod_description"] = np.bytes_(description.replace(b"\0", b"?"))
        file.attrs["spectrod_engines"] = np.bytes_(engines.replace(b"\0", b"?"))
    _check_file("input.nc", out.getvalue())


def check_zarr(data: bytes) -> None:
    """Read a Zarr store whose root has this metadata, and the chunks of a valid one."""
    folder, _ = _zarr_store()
    (folder / "zarr.json").write_bytes(data)
    try:
        _read(open_recording(folder))
    except (InputError, StorageError):
        return


@cache
def _zarr_store() -> tuple[Path, bytes]:
    """Make a valid store; return its folder, and its metadata, which a check replaces."""
    folder = _SCRATCH.folder / "input.zarr"
    _export(folder)
    return folder, (folder / "zarr.json").read_bytes()


def _export(path: Path, **settings: Any) -> None:
    spec = make_spec(**settings)
    writer = make_data(path, describe(spec), ExportOptions())
    writer.write(make_batch(spec, 0, 3))
    writer.write(make_batch(spec, 10, 2, gap_samples=70, discontinuity=True, engine="opencl:x"))
    writer.finish()


@cache
def _template(suffix: str, channels: int = 1) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / f"a{suffix}"
        _export(path, channels=channels)
        return path.read_bytes()


def csv_seeds() -> list[bytes]:
    """Make files of one and two channels."""
    return [_template(".csv", channels) for channels in (1, 2)]


def npz_seeds() -> list[bytes]:
    """Make files of one and two channels."""
    return [_template(".npz", channels) for channels in (1, 2)]


def attribute_seeds() -> list[bytes]:
    """Take the attributes of a valid file."""
    with h5py.File(io.BytesIO(_template(".nc")), "r") as file:
        texts = [file.attrs[name] for name in ("spectrod_description", "spectrod_engines")]
    return [_MARK.join(text.encode() for text in texts)]


def zarr_seeds() -> list[bytes]:
    """Take the metadata of a valid store."""
    return [_zarr_store()[1]]


def levels_seeds() -> list[bytes]:
    """Make statistics of a few rows."""
    spec = make_spec(scaling="dbfs")
    statistics = LevelStatistics(spec)
    batch = make_batch(spec, 0, 4)
    statistics.add(replace(batch, values=np.full_like(batch.values, -20.0)))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.npz"
        write_npz(path, statistics, describe(spec), Span(0, 10**9))
        return [path.read_bytes()]


def mutate_csv(data: bytes, rng: random.Random) -> bytes:
    """Change the JSON of a line, words, lines."""
    if rng.random() < 0.5:
        return mutate_text(data, rng, _CSV_WORDS)
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    head, colon, text = lines[at].partition(b": ")
    if colon and head.startswith(b"#"):
        lines[at] = head + colon + mutate_json(text, rng)
    return b"\n".join(lines)


def mutate_attributes(data: bytes, rng: random.Random) -> bytes:
    """Change the JSON of the description, or the list of engines."""
    description, mark, engines = data.partition(_MARK)
    if rng.random() < 0.2:
        return description + mark + havoc(engines, rng)
    return mutate_json(description, rng) + mark + engines


# ---- archives: mutated members, packed again with right checksums


def mutate_archive(data: bytes, rng: random.Random) -> bytes:
    """Change a member of an NPZ file: its header, its JSON, its bytes, its name."""
    members = _members(data)
    if not members or rng.random() < 0.1:
        return havoc(data, rng)
    name = rng.choice(list(members))
    content = members[name]
    match rng.randrange(6):
        case 0:
            del members[name]
        case 1:
            members[name] = members[rng.choice(list(members))]
        case 2 | 3:
            members[name] = _other_array(content, rng)
        case 4:
            members[name] = _other_text(content, rng)
        case _:
            members[name] = havoc(content, rng)
    return _packed(members, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def _members(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name)[: 1 << 20] for name in archive.namelist()}
    except Exception:  # noqa: BLE001 - whatever is wrong with it, bytes are changed instead
        return {}


def _packed(members: dict[str, bytes], method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def _with_zeros(members: dict[str, bytes], name: str, n_zeros: int) -> bytes:
    """Pack members, one with zeros after it, without holding them all in memory."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for one, content in members.items():
            with archive.open(one, "w", force_zip64=True) as member:
                member.write(content)
                for _ in range(n_zeros >> 16 if one == name else 0):
                    member.write(bytes(1 << 16))
    return out.getvalue()


def _header_end(content: bytes) -> int:
    return 10 + struct.unpack_from("<H", content, 8)[0] if len(content) >= 10 else 0


def _other_array(content: bytes, rng: random.Random) -> bytes:
    """Change the text of an array's shape and type."""
    end = _header_end(content)
    text = content[10:end]
    others = (b"<f4", b"<f8", b"<c8", b"|O", b"|V0", b"<U0", b"<M8[ns]", b"|i1", b"<i8", b">f4")
    if rng.random() < 0.5:
        old = next((other for other in others if other in text), b"False")
        text = text.replace(old, rng.choice((*others, b"True")), 1)
    else:
        number = b"%d" % rng.choice(ODD_INTEGERS)
        shape = rng.choice(
            (b"(%b,)", b"(%b, 1, 9)", b"(3, %b, 9)", b"(3, 1, %b)", b"(-%b,)", b"()")
        )
        before, found, _ = text.partition(b"'shape': ")
        text = before + found + (shape % number if b"%" in shape else shape) + b", }"
    text = text.rstrip(b" \n").ljust(end - 11, b" ") + b"\n"
    return content[:8] + struct.pack("<H", len(text) & 0xFFFF) + text + content[end:]


def _other_text(content: bytes, rng: random.Random) -> bytes:
    """Change the JSON in an array of one text, UTF-32 as NumPy stores it."""
    end = _header_end(content)
    text = content[end:].decode("utf-32-le", "replace").encode("utf-8", "replace")
    changed = mutate_json(text, rng).decode("utf-8", "replace")
    out = io.BytesIO()
    np.lib.format.write_array(out, np.array(changed.replace("\0", "?")), allow_pickle=False)
    return out.getvalue()


def _nested_descriptions() -> Iterator[bytes]:
    (seed,) = attribute_seeds()
    description, mark, engines = seed.partition(_MARK)
    for deep in nested():
        yield deep + mark + engines
        yield description[:-1] + b', "later": ' + deep + mark + engines
        yield description + mark + deep


def _nested_lines() -> Iterator[bytes]:
    for deep in nested():
        yield b"# spectrod_description: " + deep + b"\n"
        for head in (b"# engine: ", b"# end: "):
            yield _template(".csv").replace(head, head + deep, 1)


def _nested_metadata() -> Iterator[bytes]:
    yield from nested()
    (seed,) = zarr_seeds()
    for deep in nested():
        yield seed.replace(b'"attributes": ', b'"attributes": ' + deep, 1)


_BOMBED = ("attributes", "description", "psd", "t_utc_ns", "engine_index", "counts", "least", "f")


def _bombs(seed: bytes) -> Iterator[bytes]:
    """Replace arrays of each kind with more zeros than memory may hold."""
    members = _members(seed)
    n_zeros = 2 * MEMORY_MAX_BYTES
    for name, content in members.items():
        if name.removesuffix(".npy") not in _BOMBED:
            continue
        other = np.lib.format.read_array(io.BytesIO(content))
        for dtype in {other.dtype.str, "<U1000000"}:
            out = io.BytesIO()
            about = {
                "descr": dtype,
                "fortran_order": False,
                "shape": (n_zeros // max(1, np.dtype(dtype).itemsize), *other.shape[1:]),
            }
            np.lib.format.write_array_header_1_0(out, about)
            yield _with_zeros({**members, name: out.getvalue()}, name, n_zeros)


TARGETS = {
    "csv": Target(check_csv, csv_seeds, mutate_csv, max_bytes=16384, large=_nested_lines),
    "npz": Target(
        check_npz,
        npz_seeds,
        mutate_archive,
        max_bytes=32768,
        large=lambda: _bombs(_template(".npz")),
    ),
    "levels": Target(
        check_levels,
        levels_seeds,
        mutate_archive,
        max_bytes=16384,
        large=lambda: _bombs(levels_seeds()[0]),
    ),
    "description": Target(
        check_description, attribute_seeds, mutate_attributes, large=_nested_descriptions
    ),
    "netcdf_text": Target(
        check_netcdf, attribute_seeds, mutate_attributes, large=_nested_descriptions
    ),
    "zarr_root": Target(
        check_zarr, zarr_seeds, mutate_json, max_bytes=65536, large=_nested_metadata
    ),
}
