"""NetCDF files and Zarr stores that mean harm, made of valid ones, each by its number.

Each is a mutation of bytes or of metadata, or does one thing that a library would follow: storage
in other files, chunks that unpack to much more, rows that nobody has stored.
"""

import json
import os
import random
import re
import shutil
import struct
import sys
import zlib
from pathlib import Path

import google_crc32c
import h5py
import numpy as np
from numcodecs import blosc

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))

from mutation import ODD_INTEGERS, havoc, mutate_hdf5, mutate_json

VALUES = "psd"
BOMB_BYTES = 1 << 28
ROWS = 10**9


def _change(number, step, rest, changes):
    """Return the change of a number: one of some for each ``step``-th number, else None."""
    return changes[number // step % len(changes)] if number % step == rest else None


def netcdf_numbers(numbers):
    """Return the numbers whose files no smaller number makes."""
    return _distinct(numbers, 2, 0, NETCDF)


def zarr_numbers(numbers):
    """Return the numbers whose stores no smaller number makes."""
    return _distinct(numbers, 3, 2, ZARR)


def _distinct(numbers, step, rest, changes):
    first = step * len(changes)
    always = {None, *RANDOM}
    return [n for n in numbers if n < first or _change(n, step, rest, changes) in always]


# ---- NetCDF


def hostile_netcdf(valid, path, number, secret):
    """Write the file of a number; ``valid`` are bytes of one, ``secret`` is a path of another."""
    rng = random.Random(number)  # noqa: S311 - no secrets
    change = _change(number, 2, 0, NETCDF)
    if change is None:
        path.write_bytes(_endless(valid) if number == 1 else mutate_hdf5(valid, rng))
        return
    path.write_bytes(valid)
    with h5py.File(path, "r+") as file:
        change(file, VALUES if VALUES in file else "effort", secret, rng)


def _endless(valid):
    """Give the first object of each global heap a size that leads libhdf5 in a circle.

    Each: which of them hold the texts that are read depends on how many attributes there are.
    """
    data = bytearray(valid)
    for heap in re.finditer(b"GCOL", valid):
        at = heap.start() + 16 + 8
        data[at : at + 8] = (2**64 - 16).to_bytes(8, "little")
    return bytes(data)


def _like(array):
    return array.shape, array.dtype


def _external(file, name, secret, _):
    shape, dtype = _like(file[name])
    del file[name]
    n_bytes = dtype.itemsize * int(np.prod(shape))
    file.create_dataset(name, shape, dtype, external=[(str(secret), 0, n_bytes)])


def _virtual(file, name, secret, _):
    shape, dtype = _like(file[name])
    del file[name]
    layout = h5py.VirtualLayout(shape, dtype)
    layout[...] = h5py.VirtualSource(str(secret), name, shape)
    file.create_virtual_dataset(name, layout)


def _external_link(file, name, secret, _):
    del file[name]
    file[name] = h5py.ExternalLink(str(secret), f"/{name}")


def _soft_link(file, name, *_):
    file.move(name, "elsewhere")
    file[name] = h5py.SoftLink("/elsewhere")


def _rows_of_nobody(file, name, *_):
    file[name].resize(ROWS, axis=0)


def _all_rows_of_nobody(file, *_):
    for one in file.values():
        if isinstance(one, h5py.Dataset) and one.maxshape[:1] == (None,):
            one.resize(ROWS, axis=0)


def _chunked(file, name, chunks, **how):
    shape, dtype = _like(file[name])
    del file[name]
    return file.create_dataset(name, shape, dtype, chunks=chunks, **how)


def _bomb(file, name, *_):
    array = _chunked(file, name, file[name].shape, compression="gzip")
    array.id.write_direct_chunk((0,) * array.ndim, zlib.compress(bytes(BOMB_BYTES)))


def _bomb_in_a_bomb(file, name, *_):
    shape, dtype = _like(file[name])
    del file[name]
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_chunk(shape)
    how.set_deflate(9)
    how.set_deflate(9)
    space = h5py.h5s.create_simple(shape)
    kind = h5py.h5t.py_create(dtype)
    array = h5py.h5d.create(file.id, name.encode(), kind, space, how)
    array.write_direct_chunk((0,) * len(shape), zlib.compress(zlib.compress(bytes(BOMB_BYTES))))


def _huge_chunk(file, name, *_):
    shape, dtype = _like(file[name])
    del file[name]
    wide = (ROWS, *shape[1:])
    chunk = (10**7 // max(1, int(np.prod(shape[1:]))), *shape[1:])
    file.create_dataset(name, wide, dtype, chunks=chunk, compression="gzip")


def _other_filter(file, name, *_):
    data = file[name][...]
    _chunked(file, name, data.shape, compression="lzf")[...] = data


def _other_type(file, name, _, rng):
    shape = file[name].shape
    del file[name]
    dtype = rng.choice(
        (h5py.string_dtype(), h5py.vlen_dtype("f4"), "f8", "S1000000", h5py.ref_dtype)
    )
    file.create_dataset(name, shape, dtype, chunks=True)


def _long_attribute(file, *_):
    file.attrs["spectrod_description"] = "a" * 10_000_000


def _many_texts(file, *_):
    texts = np.full(1 << 20, "a" * 20, object)
    file.attrs.create("spectrod_engines", texts, dtype=h5py.string_dtype())


def _group(file, name, *_):
    del file[name]
    file.create_group(name)


def _text_changed(file, name, _, rng):
    for key in ("spectrod_description", "spectrod_engines"):
        if key in file.attrs:
            text = mutate_json(str(file.attrs[key]).encode(), rng).decode("utf-8", "replace")
            file.attrs[key] = text.replace("\0", "?")


NETCDF = (
    _external, _virtual, _external_link, _soft_link, _rows_of_nobody, _all_rows_of_nobody, _bomb,
    _bomb_in_a_bomb, _huge_chunk, _other_filter, _other_type, _long_attribute, _many_texts, _group,
    _text_changed,
)  # fmt: skip


# ---- Zarr


def hostile_zarr(valid, path, number, secret):
    """Make the store of a number; ``valid`` is the folder of one, ``secret`` a path of a file."""
    shutil.copytree(valid, path)
    rng = random.Random(number)  # noqa: S311 - no secrets
    arrays = sorted(one.parent for one in path.rglob("zarr.json") if (one.parent / "c").is_dir())
    change = _change(number, 3, 2, ZARR)
    if change is not None:
        of_values = next((one for one in arrays if one.name == VALUES), arrays[0])
        change(of_values, secret, rng)
    elif number % 3 == 0:
        metadata = rng.choice(sorted(path.rglob("zarr.json")))
        metadata.write_bytes(mutate_json(metadata.read_bytes(), rng))
    else:
        array = rng.choice(arrays)
        for _ in range(rng.randint(1, 2)):
            _changed_chunk(array, rng)


def _chunk_of(array):
    return next(path for path in sorted((array / "c").rglob("*")) if path.is_file())


def _checked(content):
    return content + struct.pack("<I", google_crc32c.value(content))


def _changed_chunk(array, rng):
    """Change bytes of a chunk, and often its checksum with them."""
    chunk = _chunk_of(array)
    content = chunk.read_bytes()
    changed = havoc(content[:-4], rng)
    if rng.random() < 0.3:
        head = bytearray(changed[:16].ljust(16, b"\0"))
        at = rng.choice((4, 8, 12))
        head[at : at + 4] = (rng.choice(ODD_INTEGERS) & 0xFFFFFFFF).to_bytes(4, "little")
        changed = bytes(head) + changed[16:]
    chunk.write_bytes(_checked(changed) if rng.random() < 0.8 else changed + content[-4:])


def _metadata(array, change):
    path = array / "zarr.json"
    about = json.loads(path.read_bytes())
    change(about)
    path.write_text(json.dumps(about))
    return about


def _claimed_rows(array, _, rng):
    n = rng.choice((2 * 10**7, 10**12, 2**63, -1))

    def change(about):
        about["shape"][0] = n
        about["chunk_grid"]["configuration"]["chunk_shape"][0] = 1

    _metadata(array, change)


def _other_codec(array, _, rng):
    name = rng.choice(("gzip", "zstd", "sharding_indexed", "transpose", "numcodecs.lzma"))
    level = {"level": 1, "checksum": False} if name == "zstd" else {"level": 1}
    about = _metadata(
        array, lambda one: one["codecs"].__setitem__(1, {"name": name, "configuration": level})
    )
    if name == "gzip":
        packer = zlib.compressobj(9, wbits=31)
        _chunk_of(array).write_bytes(packer.compress(bytes(BOMB_BYTES)) + packer.flush())
    assert about["codecs"][1]["name"] == name


def _no_checksum(array, secret, _):
    """Store the secret's bytes as values, which a reader would copy into its output."""
    data = Path(secret).read_bytes()
    _metadata(array, lambda one: one.__setitem__("codecs", one["codecs"][:1]))
    chunk = _chunk_of(array)
    chunk.unlink()
    chunk.symlink_to(secret)
    assert data


def _blosc_bomb(array, *_):
    _chunk_of(array).write_bytes(_checked(blosc.compress(bytes(BOMB_BYTES), b"zstd", 9)))


def _hole(array, _, rng):
    path = rng.choice((_chunk_of(array), array / "zarr.json", array.parent / "zarr.json"))
    os.truncate(path, 20 << 30)


def _fifo(array, _, rng):
    path = rng.choice((_chunk_of(array), array / "zarr.json", array.parent / "zarr.json"))
    path.unlink()
    os.mkfifo(path)


def _linked_folder(array, secret, _):
    shutil.rmtree(array)
    array.symlink_to(Path(secret).parent)


def _lost(array, *_):
    _chunk_of(array).unlink()


def _large_chunk(array, *_):
    def change(about):
        about["chunk_grid"]["configuration"]["chunk_shape"][0] = 10**8

    _metadata(array, change)


def _deep(array, *_):
    (array.parent / "zarr.json").write_bytes(b'{"attributes":' + b"[" * 10**6)


ZARR = (
    _claimed_rows, _other_codec, _no_checksum, _blosc_bomb, _hole, _fifo, _linked_folder, _lost,
    _large_chunk, _deep,
)  # fmt: skip

RANDOM = (_other_type, _text_changed, _claimed_rows, _other_codec, _hole, _fifo)
"""Changes that differ from number to number; any other makes the same each time."""
