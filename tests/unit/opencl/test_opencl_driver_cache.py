"""The check of PoCL's cache, which prevents PoCL from ending the process."""

import errno
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from spectrod.lib.errors import DeviceError, NotCompiledError
from spectrod.opencl import driver_cache, program
from spectrod.opencl.driver_cache import POCL, driver_cache_folder, driver_cache_trouble
from spectrod.opencl.program import Programs
from spectrod.opencl.program_cache import BinaryCache

OF_CACHES = ("POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
DEVICE = SimpleNamespace(platform=POCL, name="EPYC", label=f"{POCL}/EPYC", driver="3", handle=None)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"POCL_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/pocl/kcache"),
        ({"HOME": "/c", "POCL_CACHE_DIR": ""}, "/c/.cache/pocl/kcache"),
        ({"HOME": ""}, "{home}/.cache/pocl/kcache"),
        ({}, "{home}/.cache/pocl/kcache"),
    ],
)
def test_the_folder_is_the_one_that_pocl_uses(environ, folder, tmp_path, monkeypatch):
    """POCL_CACHE_DIR comes before XDG_CACHE_HOME, and that before the home folder."""
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(tmp_path)))
    assert driver_cache_folder(environ) == Path(folder.format(home=tmp_path))


NO_HOME = """
import os, pwd, sys
from types import SimpleNamespace
def user(_):
    if sys.argv[1] == "unknown":
        raise KeyError(_)
    return SimpleNamespace(pw_dir=sys.argv[1])
pwd.getpwuid = user
from spectrod.opencl.driver_cache import choose_driver_cache, driver_cache_folder
choose_driver_cache()
folder = driver_cache_folder()
print(folder, oct(folder.stat().st_mode & 0o777), os.environ["POCL_CACHE_DIR"])
"""


@pytest.mark.parametrize("home", ["/nonexistent", "relative", "unknown"])
def test_without_a_home_the_folder_is_new_and_of_this_process(home, tmp_path):
    """PoCL would take /tmp/pocl/kcache, whoever made it; this one is private and ends."""
    without = {name: text for name, text in os.environ.items() if name not in OF_CACHES}
    done = subprocess.run(
        [sys.executable, "-c", NO_HOME, home],
        env={**without, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    folder, mode, chosen = done.stdout.split()
    assert (chosen, mode) == (folder, "0o700")
    assert Path(folder).parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_pocl_gets_the_folder_that_is_checked(tmp_path, monkeypatch):
    """Links are resolved once: what they show later does not matter."""
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in OF_CACHES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    driver_cache.choose_driver_cache()
    assert os.environ["POCL_CACHE_DIR"] == str(tmp_path / "real" / "pocl" / "kcache")


def give_away(path, monkeypatch):
    """Make a path that of another user; return the uid."""
    if os.geteuid() == 0:
        os.chown(path, 60002, 60002, follow_symlinks=False)
        return 60002
    monkeypatch.setattr(os, "geteuid", lambda: 60002)
    return path.lstat().st_uid


@pytest.mark.parametrize("which", ["pocl", "above", "link"])
def test_a_folder_of_another_user_is_refused(which, tmp_path, monkeypatch):
    """What another user has planted there would run as this one: the driver is never called."""
    real = tmp_path / "above" / "pocl"
    real.mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    folder = tmp_path / "link" if which == "link" else real
    owned = {"pocl": real, "above": real.parent, "link": tmp_path / "link"}[which]
    uid = give_away(owned, monkeypatch)
    rule = f"PoCL's cache may hold programs of others: .* belongs to uid {uid}: must be this user's"
    assert re.search(rule, driver_cache_trouble(folder))


@pytest.mark.parametrize(
    ("mode", "above", "is_refused"),
    [
        (0o700, 0o755, False),
        (0o755, 0o775, False),
        (0o700, 0o1777, False),
        (0o770, 0o755, True),
        (0o702, 0o755, True),
        (0o1777, 0o755, True),
        (0o700, 0o777, True),
    ],
)
def test_a_folder_that_others_may_write_to_is_refused(mode, above, is_refused, tmp_path):
    """Nobody else may write to the folder, and above it only to sticky ones."""
    folder = tmp_path / "above" / "pocl"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    folder.parent.chmod(above)
    trouble = driver_cache_trouble(folder)
    assert bool(trouble) == is_refused
    assert not is_refused or "others may write to it; chmod go-w, after a look inside" in trouble


def test_the_driver_loads_nothing_that_was_planted(tmp_path, driver, monkeypatch):
    """The planted folder ends the use of the driver before it compiles or loads."""
    folder = tmp_path / "pocl"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("POCL_CACHE_DIR", str(folder))
    cache = BinaryCache(tmp_path / "programs")
    programs = Programs(None, DEVICE, cache, compiler=driver.compiler)
    with pytest.raises(DeviceError, match="PoCL's cache may hold programs of others"):
        programs.check_compiler()
    assert driver.calls == []


def test_planted_programs_are_not_loaded(tmp_path, caplog):
    """Compiled programs in a folder that others may write to count as none; one warning says so."""
    cache = BinaryCache(tmp_path / "programs")
    cache.store("key", b"binary")
    cache.folder.chmod(0o777)
    assert cache.load("key") is None
    cache.store("other", b"binary")
    assert len(list(cache.folder.iterdir())) == 1
    assert len(caplog.records) == 1
    assert "compiled programs are neither loaded nor stored" in caplog.text
    cache.folder.chmod(0o700)
    assert cache.load("key") == b"binary"


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
    """Count what reaches the driver; ``compiler`` is that of its programs."""
    calls = []
    monkeypatch.setattr(program, "load_binary", lambda *_: calls.append("load"))
    monkeypatch.setattr(program, "sound_binary_of", lambda *_: calls.append("binary") or b"")
    return SimpleNamespace(calls=calls, compiler=lambda *_: calls.append("build"))


@pytest.fixture
def no_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path / "file" / "pocl"))


@pytest.mark.usefixtures("no_cache")
def test_the_driver_neither_compiles_nor_loads_without_its_cache(tmp_path, driver):
    """Both would end the process: the error comes before the driver is called."""
    cache = BinaryCache(tmp_path / "programs")
    programs = Programs(None, DEVICE, cache, compiler=driver.compiler)
    with pytest.raises(DeviceError, match="PoCL's cache cannot be written: Not a directory"):
        programs.check_compiler()
    cache.store(program.cache_key(DEVICE, program._PROBE), b"/program.bc\1\0\0\0.")
    with (
        programs.only_compiled(),
        pytest.raises(DeviceError, match="PoCL's cache cannot be written"),
    ):
        programs.check_compiler()
    assert driver.calls == []


def test_a_cache_that_vanishes_ends_the_use_of_the_driver(tmp_path, driver, monkeypatch):
    """Nothing is stored once the folder is unusable; when it is back, the driver is used again."""
    folder = tmp_path / "pocl"
    monkeypatch.setenv("POCL_CACHE_DIR", str(folder))
    programs = Programs(None, DEVICE, BinaryCache(tmp_path / "programs"), compiler=driver.compiler)
    programs.check_compiler()
    folder.rmdir()
    folder.write_text("")
    programs.store()
    assert driver.calls == ["build"]
    folder.unlink()
    programs.check_compiler()
    programs.store()
    assert driver.calls == ["build", "build", "binary"]


@pytest.mark.usefixtures("no_cache")
def test_other_drivers_need_no_cache_of_pocl(tmp_path, driver):
    """Only PoCL's platform is checked, and a missing binary is reported as before."""
    other = SimpleNamespace(**{**vars(DEVICE), "platform": "Other"})
    programs = Programs(None, other, BinaryCache(tmp_path / "programs"), compiler=driver.compiler)
    programs.check_compiler()
    programs.store()
    assert driver.calls == ["build", "binary"]
    programs = Programs(None, DEVICE, BinaryCache(tmp_path / "empty"), compiler=driver.compiler)
    with programs.only_compiled(), pytest.raises(NotCompiledError, match="a kernel is not in"):
        programs.check_compiler()
