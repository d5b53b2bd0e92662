"""Which configuration files are read, and how drop-ins are merged."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from spectrod.cli import main
from spectrod.config import config, config_files
from spectrod.lib.errors import ConfigError


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """An empty folder, with no other configuration around."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        config_files, "SYSTEM_FILE", tmp_path / "etc" / "spectrod" / "spectrod.toml"
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for name in list(os.environ):
        if name.startswith("SPECTROD_"):
            monkeypatch.delenv(name)
    return tmp_path


def write(path, text):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# ---- which file


def test_root_reads_the_systems_file(monkeypatch, folder):
    """Root reads the file in /etc, whatever is in its home."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert config.find_file() is None
    write("home/spectrod/spectrod.toml", "")
    assert config.find_file() is None
    system = write(config_files.SYSTEM_FILE, "")
    assert config.find_file() == system


def test_other_users_read_their_own_file(monkeypatch, folder):
    """Another user reads a file in the home, and never the system's."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    write(config_files.SYSTEM_FILE, "[recordings.all]\n")
    assert config.find_file() is None
    assert config.load().recordings == ()
    own = write("home/spectrod/spectrod.toml", "[analysis]\nhop = 7\n")
    assert config.find_file() == folder / own
    assert config.load().analysis.hop == 7


@pytest.mark.parametrize("value", ["", "relative"])
def test_without_a_base_folder_it_is_that_of_the_home(monkeypatch, folder, value):
    """An empty or relative $XDG_CONFIG_HOME does not count, as its specification says."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CONFIG_HOME", value)
    monkeypatch.setenv("HOME", str(folder))
    own = write(folder / ".config" / "spectrod" / "spectrod.toml", "")
    assert config.find_file() == own


def test_a_file_that_is_named_wins(monkeypatch, folder):
    """``--config`` wins over the variable, which wins over the default file."""
    write("home/spectrod/spectrod.toml", "")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("SPECTROD_CONFIG", "b.toml")
    assert config.find_file("a.toml") == Path("a.toml")
    assert config.find_file() == Path("b.toml")


# ---- drop-ins


def test_later_files_win_key_by_key(folder):
    """Keys of later files win, tables are merged, arrays replaced; the order is by name."""
    write(
        "spectrod.toml",
        "[analysis]\nhop = 1\nnfft = 8192\n[products.p]\nhop = 3\nnfft = 8192\n"
        "[sources.a]\nuri = 'signal:white,-20'\nselect = [0, 1]\nanalysis = { hop = 5 }\n",
    )
    write("conf.d/20.toml", "[analysis]\nhop = 20\n[sources.a]\nselect = [1]\n")
    write("conf.d/10.toml", "[analysis]\nhop = 10\nwindow = 'flattop'\n[products.p]\nhop = 30\n")
    write("conf.d/30.toml", "[sources.a.analysis]\nnfft = 16384\n[sources.b]\nuri = '-'\n")
    loaded = config.load("spectrod.toml")
    assert loaded.analysis == config.AnalysisConfig("flattop", hop=20, nfft=8192)
    assert (loaded.products[0].hop, loaded.products[0].nfft) == (30, 8192)
    first, second = loaded.sources
    assert (first.uri, first.select, second.uri) == ("signal:white,-20", (1,), "-")
    assert first.analysis == config.AnalysisConfig("flattop", hop=5, nfft=16384)


@pytest.mark.parametrize(
    "name", [".10.toml", "10.toml~", ".10.toml.swp", "10.toml.dpkg-new", "10.conf", ".#10.toml"]
)
def test_hidden_files_and_backups_do_not_count(folder, name):
    """What editors and packages leave in the folder is not read."""
    write("spectrod.toml", "[analysis]\nhop = 1\n")
    write(f"conf.d/{name}", "not TOML")
    assert config.load("spectrod.toml").analysis.hop == 1


def test_each_file_has_a_folder_of_its_own(folder):
    """The drop-ins of an instance are not those of the main daemon."""
    write("spectrod.toml", "")
    write("roof.toml", "")
    write("conf.d/10.toml", "[analysis]\nhop = 1\n")
    write("roof.conf.d/10.toml", "[analysis]\nhop = 2\n")
    assert config.load("spectrod.toml").analysis.hop == 1
    assert config.load("roof.toml").analysis.hop == 2


def test_drop_ins_may_be_all_there_is(monkeypatch, folder):
    """Without the default file its drop-ins are read; a file that was named must exist."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    write(config_files.SYSTEM_FILE.parent / "conf.d" / "1.toml", "[analysis]\nhop = 4\n")
    assert config.load().analysis.hop == 4
    write("conf.d/1.toml", "")
    with pytest.raises(ConfigError, match=r"^spectrod\.toml: No such file or directory$"):
        config.load("spectrod.toml")


def test_mistakes_of_all_files_are_listed_with_their_places(capsys, folder):
    """Each mistake names its file; a rule between keys the file that wins."""
    write("spectrod.toml", "[analysis]\nhop = 'x'\nnfft = 2048\n")
    write("conf.d/1.toml", "[analysis]\n\nwin_length = 4096\nhop = 512\nhopp = 1\n")
    write("conf.d/2.toml", "[analysis\n")
    (folder / "conf.d" / "3.toml").mkdir()
    (folder / "conf.d" / "4.toml").symlink_to("nowhere")
    os.mkfifo("conf.d/5.toml")
    assert main(["config", "check", "spectrod.toml"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [re.split(r": (?=\D)", line)[1] for line in lines] == [
        "spectrod.toml:2:1",
        "conf.d/1.toml:5:1",
        "conf.d/2.toml:1:10",
        "conf.d/3.toml",
        "conf.d/4.toml",
        "conf.d/5.toml",
    ]
    assert lines[3].endswith(": is a folder; must be a file")
    assert lines[4].endswith(": No such file or directory")
    assert lines[5].endswith(": must be a regular file")
    for name in ("2", "3", "4", "5"):
        path = folder / "conf.d" / f"{name}.toml"
        path.rmdir() if path.is_dir() else path.unlink()
    write("spectrod.toml", "[analysis]\nhop = 1\nnfft = 2048\n")
    write("conf.d/1.toml", "[analysis]\n\nwin_length = 4096\n")
    with pytest.raises(
        ConfigError, match=r"^conf\.d/1\.toml:3:1: win_length=4096: must not exceed"
    ):
        config.load("spectrod.toml")


def test_one_source_and_several_in_two_files_name_both_places(folder):
    """[source] in one file and [sources.NAME] in another cannot be merged."""
    write("spectrod.toml", "[source]\nuri = '-'\n")
    write("conf.d/1.toml", "\n[sources.a]\nuri = 'x.wav'\n")
    message = (
        r"^conf\.d/1\.toml:2:10: \[source\] and \[sources\.a\]: must be one or the other; "
        r"\[source\] stands in spectrod\.toml:1:2$"
    )
    with pytest.raises(ConfigError, match=message):
        config.load("spectrod.toml")


def test_the_folder_is_bounded(folder):
    """At most 64 files, of 256 KiB each and 1 MiB together, are read."""
    write("spectrod.toml", "")
    for k in range(4):
        write(f"conf.d/{k}.toml", "#" * config_files.FILE_BYTES_MAX)
    config.load("spectrod.toml")
    write("conf.d/9.toml", "#")
    message = r"^conf\.d/9\.toml: it and the files before it must have at most 1048576 bytes$"
    with pytest.raises(ConfigError, match=message):
        config.load("spectrod.toml")
    for k in range(65):
        write(f"conf.d/{k}.toml", "")
    with pytest.raises(ConfigError, match=r"^conf\.d: must have at most 64 files"):
        config.load("spectrod.toml")
    (folder / "conf.d" / "64.toml").unlink()
    (folder / "conf.d" / "9.toml").write_bytes(b"")
    config.load("spectrod.toml")


# ---- origins


def test_show_names_the_origin_of_each_value(capsys, folder, monkeypatch):
    """Each value has its file and line, or the layer, and the output is TOML of the same values."""
    write("spectrod.toml", "[analysis]\nhop = 1\nnfft = 8192\n[sources.'a.b']\nuri = '-'\n")
    write("conf.d/1.toml", "\n[analysis]\nhop = 2\n[sources.'a.b'.analysis]\nwindow = 'hamming'\n")
    monkeypatch.setenv("SPECTROD_LOG_LEVEL", "debug")
    assert main(["config", "show", "--config", "spectrod.toml"]) == 0
    plain = capsys.readouterr().out
    assert main(["config", "show", "--config", "spectrod.toml", "--origin"]) == 0
    shown = capsys.readouterr().out
    assert tomllib.loads(shown) == tomllib.loads(plain)
    lines = shown.splitlines()
    for line in (
        "hop = 2  # conf.d/1.toml:3:1",
        "nfft = 8192  # spectrod.toml:3:1",
        "win_length = 4096  # default",
        'uri = "-"  # spectrod.toml:5:1',
        'window = "hamming"  # conf.d/1.toml:5:1',
        'level = "debug"  # environment',
    ):
        assert line in lines, line
    assert lines.count("hop = 2  # conf.d/1.toml:3:1") == 2  # [analysis], and the source's


def test_the_check_takes_the_file_that_is_used(capsys, folder, monkeypatch):
    """Without FILE the check reads what the commands read, and without one it says so."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out == "no configuration file: the defaults are right\n"
    write(config_files.SYSTEM_FILE, "")
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out == f"{config_files.SYSTEM_FILE}: right\n"
