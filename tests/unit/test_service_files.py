import subprocess
import tomllib
from pathlib import Path

from spectrod import config

ROOT = Path(__file__).parents[2]


def test_the_example_configuration_is_the_default_but_for_source_and_endpoints():
    """The example configuration has the defaults, except for source and endpoints."""
    example = tomllib.loads((ROOT / "systemd" / "spectrod.toml").read_text())
    default = tomllib.loads(config.default_toml())
    assert example["source"].pop("uri") == "soundcard"
    default["source"].pop("uri")
    assert example["publish"].pop("endpoints")[0] == "ipc:///run/spectrod/spectrum.ipc"
    default["publish"].pop("endpoints")
    assert example == default


def test_the_example_configuration_is_right():
    """The example configuration passes the checks of the daemon's start."""
    assert config.load(str(ROOT / "systemd" / "spectrod.toml")).source.uri == "soundcard"


def test_staged_files_name_the_prefix(tmp_path):
    """With DESTDIR only unit and configuration are staged; the unit starts PREFIX's program."""
    subprocess.run(
        ["make", "install", f"DESTDIR={tmp_path}", "PREFIX=/usr/local/lib/spectrod"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    unit = (tmp_path / "etc/systemd/system/spectrod.service").read_text()
    assert "ExecStart=/usr/local/lib/spectrod/bin/spectrod run" in unit
    assert "/opt" not in unit
    bridge = (tmp_path / "etc/systemd/system/spectrod-mqtt.service").read_text()
    assert "ExecStart=/usr/local/lib/spectrod/bin/spectrod mqtt " in bridge
    assert "/opt" not in bridge
    assert (tmp_path / "usr/local/lib/spectrod/share/spectrod/mqtt.md").exists()
    assert (tmp_path / "etc/spectrod/spectrod.toml").exists()
    assert not (tmp_path / "usr/local/lib/spectrod/bin").exists()


def test_an_edited_configuration_is_not_overwritten(tmp_path):
    """A second installation keeps an edited configuration."""
    edited = tmp_path / "etc" / "spectrod" / "spectrod.toml"
    edited.parent.mkdir(parents=True)
    edited.write_text("# mine\n")
    subprocess.run(
        ["make", "install-files", f"DESTDIR={tmp_path}"], cwd=ROOT, check=True, capture_output=True
    )
    assert edited.read_text() == "# mine\n"
