"""The check of PoCL's cache, which prevents PoCL from ending the process."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from spectrod.errors import DeviceError, NotCompiledError
from spectrod.opencl import driver_cache, program
from spectrod.opencl.cache import BinaryCache
from spectrod.opencl.driver_cache import POCL, driver_cache_folder, driver_cache_trouble
from spectrod.opencl.program import Programs

DEVICE = SimpleNamespace(platform=POCL, name="EPYC", label=f"{POCL}/EPYC", driver="3", handle=None)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"POCL_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/pocl/kcache"),
        ({"HOME": "/c", "POCL_CACHE_DIR": ""}, "/c/.cache/pocl/kcache"),
        ({}, "/tmp/pocl/kcache"),  # noqa: S108 - nothing is written there
    ],
)
def test_the_folder_is_the_one_that_pocl_uses(environ, folder):
    """POCL_CACHE_DIR comes before XDG_CACHE_HOME, and that before the home folder."""
    assert driver_cache_folder(environ) == Path(folder)


def test_a_missing_folder_is_made_and_nothing_remains_in_it(tmp_path):
    """A usable folder gives no trouble, is made if it is missing, and stays empty."""
    folder = tmp_path / "new" / "pocl"
    assert driver_cache_trouble(folder) == ""
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    """The reason of the system is in the text."""
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "pocl"
    assert driver_cache_trouble(folder) == (
        f"{folder}: PoCL's cache cannot be written: Not a directory"
    )


def _pretend(monkeypatch, *, flags=0, free_bytes=1 << 40):
    found = SimpleNamespace(f_flag=flags, f_bavail=free_bytes // 4096, f_frsize=4096)
    monkeypatch.setattr(driver_cache.os, "statvfs", lambda _: found)


def test_a_folder_from_which_nothing_may_be_executed_is_refused(tmp_path, monkeypatch):
    """PoCL loads kernels as shared libraries, which noexec forbids."""
    _pretend(monkeypatch, flags=os.ST_NOEXEC | os.ST_NOSUID)
    assert "is mounted noexec" in driver_cache_trouble(tmp_path)


@pytest.mark.parametrize(("free_bytes", "is_enough"), [(0, False), ((32 << 20), True)])
def test_a_full_disk_is_refused(tmp_path, monkeypatch, free_bytes, is_enough):
    """At least 32 MiB must be free."""
    _pretend(monkeypatch, free_bytes=free_bytes)
    trouble = driver_cache_trouble(tmp_path)
    assert (trouble == "") == is_enough
    assert is_enough or "has 0.0 MB of free space, but needs 33.6 MB" in trouble


def test_a_process_without_free_descriptors_is_refused(tmp_path, monkeypatch):
    """PoCL ends the process where it cannot open its files; what the check has opened is closed."""
    opened, before = iter(range(15)), len(list(Path("/proc/self/fd").iterdir()))
    real = os.dup

    def dup(fd):
        if next(opened, None) is None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(fd)

    monkeypatch.setattr(driver_cache.os, "dup", dup)
    assert driver_cache_trouble(tmp_path) == (
        f"{tmp_path}: PoCL's cache cannot be written: Too many open files"
    )
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.fixture
def driver(monkeypatch):
    """Count what reaches the driver."""
    calls = []
    monkeypatch.setattr(program, "_build", lambda *_: calls.append("build"))
    monkeypatch.setattr(program, "load_binary", lambda *_: calls.append("load"))
    monkeypatch.setattr(program, "sound_binary_of", lambda *_: calls.append("binary") or b"")
    return calls


@pytest.fixture
def no_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path / "file" / "pocl"))


@pytest.mark.usefixtures("no_cache")
def test_the_driver_neither_compiles_nor_loads_without_its_cache(tmp_path, driver):
    """Both would end the process: the error comes before the driver is called."""
    cache = BinaryCache(tmp_path / "programs")
    programs = Programs(None, DEVICE, cache)
    with pytest.raises(DeviceError, match="PoCL's cache cannot be written: Not a directory"):
        programs.check_compiler()
    cache.store(program.cache_key(DEVICE, program._PROBE), b"/program.bc\1\0\0\0.")
    with (
        programs.only_compiled(),
        pytest.raises(DeviceError, match="PoCL's cache cannot be written"),
    ):
        programs.check_compiler()
    assert driver == []


def test_a_cache_that_vanishes_ends_the_use_of_the_driver(tmp_path, driver, monkeypatch):
    """Nothing is stored once the folder is unusable; when it is back, the driver is used again."""
    folder = tmp_path / "pocl"
    monkeypatch.setenv("POCL_CACHE_DIR", str(folder))
    programs = Programs(None, DEVICE, BinaryCache(tmp_path / "programs"))
    programs.check_compiler()
    folder.rmdir()
    folder.write_text("")
    programs.store()
    assert driver == ["build"]
    folder.unlink()
    programs.check_compiler()
    programs.store()
    assert driver == ["build", "build", "binary"]


@pytest.mark.usefixtures("no_cache")
def test_other_drivers_need_no_cache_of_pocl(tmp_path, driver):
    """Only PoCL's platform is checked, and a missing binary is reported as before."""
    other = SimpleNamespace(**{**vars(DEVICE), "platform": "Other"})
    programs = Programs(None, other, BinaryCache(tmp_path / "programs"))
    programs.check_compiler()
    programs.store()
    assert driver == ["build", "binary"]
    programs = Programs(None, DEVICE, BinaryCache(tmp_path / "empty"))
    with programs.only_compiled(), pytest.raises(NotCompiledError, match="a kernel is not in"):
        programs.check_compiler()
