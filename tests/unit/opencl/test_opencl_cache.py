import gc
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pyopencl as cl
import pytest

from spectrod.opencl import program
from spectrod.opencl.context import Context
from spectrod.opencl.program_cache import BinaryCache, default_folder

DEFINES = (("VALUE_BYTES", 4), ("TILE", 4), ("TILE_ROWS", 4))

START = """
import sys
from contextlib import nullcontext
from pathlib import Path
from spectrod.opencl.program_cache import BinaryCache
from spectrod.opencl.context import Context
from spectrod.opencl.devices import choose

context = Context(choose(sys.argv[1]), cache=BinaryCache(Path(sys.argv[2])))
context.kernel("transpose.cl", "transpose", (("VALUE_BYTES", 4), ("TILE", 4), ("TILE_ROWS", 4)))
"""


@pytest.fixture
def cache(tmp_path):
    return BinaryCache(tmp_path / "programs")


def use_kernel(device, cache, *, compiles=True):
    context = Context(device, cache=cache, compiles=compiles)
    with nullcontext() if compiles else context.only_compiled():
        context.kernel("transpose.cl", "transpose", DEFINES)
    context.close()


def age(path, seconds):
    status = path.stat()
    os.utime(path, (status.st_atime - seconds, status.st_mtime - seconds))


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        ("/var/cache", "/var/cache/spectrod/programs"),
        ("", "~/.cache/spectrod/programs"),
        ("relative", "~/.cache/spectrod/programs"),
    ],
)
def test_the_folder_is_where_caches_belong(variable, folder):
    """The folder is in XDG_CACHE_HOME if that is an absolute path."""
    assert default_folder({"XDG_CACHE_HOME": variable}) == Path(folder).expanduser()


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    """A user without a home folder has no cache, which is no error."""

    def no_home():
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    cache = BinaryCache(default_folder({}))
    cache.store("key", b"binary")
    assert cache.load("key") is None


def test_a_file_that_cannot_be_touched_is_loaded(cache, monkeypatch):
    """A cached file that cannot be touched, as on a read-only disk, is still loaded."""

    def utime(_):
        raise OSError

    cache.store("key", b"binary")
    monkeypatch.setattr(os, "utime", utime)
    assert cache.load("key") == b"binary"


def test_folders_are_not_removed(tmp_path):
    """A folder within the cache is not removed and does not keep old files from removal."""
    cache = BinaryCache(tmp_path, max_bytes=32 + 100)
    (tmp_path / "folder").mkdir()
    cache.store("a", bytes(100))
    age(tmp_path / "a.bin", 100)
    cache.store("b", bytes(100))
    assert {path.name for path in tmp_path.iterdir()} == {"b.bin", "folder"}


def test_a_stored_binary_is_loaded(cache):
    """A stored binary loads unchanged, and only under its own key."""
    cache.store("key", b"binary")
    assert cache.load("key") == b"binary"
    assert cache.load("other") is None
    assert cache.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "damage", [lambda c: c[:-1], lambda c: c + b"x", lambda _: b"", bytes.upper]
)
def test_a_damaged_file_counts_as_none(cache, damage):
    """A truncated, extended, empty or altered file is not used and can be replaced."""
    cache.store("key", b"a binary of some length")
    path = cache.folder / "key.bin"
    path.write_bytes(damage(path.read_bytes()))
    assert cache.load("key") is None
    cache.store("key", b"new")
    assert cache.load("key") == b"new"


def test_a_folder_that_cannot_be_is_no_error(tmp_path):
    """If a file is in place of the folder, nothing is cached and nothing fails."""
    (tmp_path / "file").write_bytes(b"")
    cache = BinaryCache(tmp_path / "file" / "programs")
    cache.store("key", b"binary")
    assert cache.load("key") is None


def test_a_failed_write_leaves_nothing_behind(cache, monkeypatch):
    """If the last step of a write fails, the temporary file is removed."""

    def replace(*_):
        raise OSError

    monkeypatch.setattr(Path, "replace", replace)
    cache.store("key", b"binary")
    assert list(cache.folder.iterdir()) == []


def test_the_least_recently_used_goes_first(tmp_path):
    """Beyond the bound the least recently used file is removed; loading counts as use."""
    cache = BinaryCache(tmp_path, max_bytes=3 * (32 + 100))
    for key in ("a", "b", "c"):
        cache.store(key, bytes(100))
        age(tmp_path / f"{key}.bin", 100)
    cache.load("a")
    cache.store("d", bytes(100))
    assert {path.name for path in tmp_path.iterdir()} == {"a.bin", "c.bin", "d.bin"}


def test_the_second_start_does_not_compile(opencl_device, cache):
    """A second context loads all programs that the first one compiled."""
    use_kernel(opencl_device, cache)
    use_kernel(opencl_device, cache, compiles=False)


def test_damaged_files_are_compiled_again(opencl_device, cache):
    """With damaged cache files, a start compiles again and repairs them."""
    use_kernel(opencl_device, cache)
    files = sorted(cache.folder.iterdir())
    whole = [path.stat().st_size for path in files]
    files[0].write_bytes(b"garbage")
    files[1].write_bytes(files[1].read_bytes()[:100])
    use_kernel(opencl_device, cache)
    assert [path.stat().st_size for path in files] == whole


def test_a_binary_that_the_driver_refuses_is_compiled_again(opencl_device, cache, monkeypatch):
    """A binary that the driver refuses is compiled again."""

    def load(*_):
        raise cl.LogicError(cl._cl._ErrorRecord(msg="", code=-42, routine="clBuildProgram"))

    use_kernel(opencl_device, cache)
    monkeypatch.setattr(program, "load_binary", load)
    use_kernel(opencl_device, cache)


def test_programs_are_kept_within_a_bound(opencl_device, tmp_path):
    """A bounded number of programs is kept; others are compiled or loaded on demand."""
    built = []

    def compiler(_context, source):
        built.append(int(re.search(r"^#define N (\d)$", source, re.MULTILINE)[1]))
        return object()

    no_cache = BinaryCache(tmp_path, max_bytes=0)
    programs = program.Programs(None, opencl_device, no_cache, programs_max=2, compiler=compiler)
    for n in (1, 2, 1, 3, 1, 2):
        programs.get("transpose.cl", (("N", n),))
    assert built == [1, 2, 3, 2]


def test_slow_storing_is_abandoned(opencl_device, cache):
    """Storing that takes too long at exit is abandoned, so a later process compiles again."""
    cache.store_s = 0.0
    use_kernel(opencl_device, cache)
    assert not cache.folder.exists()


def test_an_explicit_request_to_store_waits(opencl_device, cache):
    """An explicit request to store waits until all is stored."""
    cache.store_s = 0.0
    Context(opencl_device, cache=cache).keep_programs()
    assert len(list(cache.folder.iterdir())) == 1


def test_a_collected_context_stores_its_programs(opencl_device, cache):
    """A context that is garbage-collected stores its programs without close."""
    Context(opencl_device, cache=cache)
    gc.collect()
    assert len(list(cache.folder.iterdir())) == 1


def test_a_cache_of_no_size_keeps_nothing(opencl_device, tmp_path):
    """With a bound of 0, not even the cache folder is created."""
    use_kernel(opencl_device, BinaryCache(tmp_path / "programs", max_bytes=0))
    assert not (tmp_path / "programs").exists()


@pytest.mark.slow
def test_processes_that_start_at_once_do_not_meet(opencl_device, cache):
    """Two processes that start at once both store, and the files are valid."""
    command = [sys.executable, "-c", START, opencl_device.number, str(cache.folder)]
    started = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=60) for process in started] == [0, 0]
    assert {path.suffix for path in cache.folder.iterdir()} == {".bin"}
    use_kernel(opencl_device, cache, compiles=False)
