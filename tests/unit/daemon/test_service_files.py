import subprocess
import tomllib
from pathlib import Path

import pytest

from spectrod.config import config

ROOT = Path(__file__).parents[3]


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


def directives(text):
    """Return the lines of a unit that are no comments, by section."""
    found, section = {}, None
    for line in text.splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            section.append(line)
    return found


def test_an_instance_shares_nothing_with_the_main_service(tmp_path):
    """The unit of instances is that of the main service, with folders and files of its own."""
    install_files(tmp_path)
    folder = tmp_path / "etc/systemd/system"
    main = directives((folder / "spectrod.service").read_text())
    instance = directives((folder / "spectrod@.service").read_text())
    own = {
        section: [
            (before, after)
            for before, after in zip(lines, instance[section], strict=True)
            if before != after
        ]
        for section, lines in main.items()
    }
    assert instance.keys() == main.keys()
    assert [before.partition("=")[0] for before, _ in own["Unit"]] == ["Description"]
    names = [before.partition("=")[0] for before, _ in own["Service"]]
    directories = [f"{kind}Directory" for kind in ("Runtime", "State", "Cache", "Logs")]
    assert names == ["ExecStart", "ExecReload", *directories, "Environment", "NoExecPaths"]
    assert all("%i" in after for changes in own.values() for _, after in changes)
    text = "\n".join(instance["Service"])
    assert "/etc/spectrod/%i.toml" in text
    assert not [line for line in instance["Service"] if line.endswith("Directory=spectrod")]
    assert own["Install"] == []


def test_the_users_unit_watches_and_restarts_like_the_systems(tmp_path):
    """What the user's unit has in common with the system's is the same."""
    install_files(tmp_path)
    system = directives((tmp_path / "etc/systemd/system/spectrod.service").read_text())
    user = directives((tmp_path / "etc/systemd/user/spectrod.service").read_text())
    of_system = dict(line.split("=", 1) for line in system["Service"])
    for line in user["Service"]:
        key, value = line.split("=", 1)
        if not key.startswith("Exec"):
            assert of_system[key] == value, key
    assert "StartLimitIntervalSec=0" in user["Unit"]
    assert user["Install"] == ["WantedBy=default.target"]
    started = [line for line in user["Service"] if line.startswith("Exec")]
    assert not [line for line in started if "/etc/" in line]


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
    page = (tmp_path / "etc/systemd/system/spectrod-web.service").read_text()
    assert "ExecStart=/usr/local/lib/spectrod/bin/spectrod web " in page
    assert "/opt" not in page
    upload = (tmp_path / "etc/systemd/system/spectrod-upload.service").read_text()
    assert "ExecStart=/usr/local/lib/spectrod/bin/spectrod upload --follow " in upload
    assert "/opt" not in upload
    for path in ("system/spectrod@.service", "user/spectrod.service"):
        other = (tmp_path / "etc/systemd" / path).read_text()
        assert "ExecStart=/usr/local/lib/spectrod/bin/spectrod run" in other
        assert "/opt" not in other
    assert (tmp_path / "usr/local/lib/spectrod/share/spectrod/mqtt.md").exists()
    assert (tmp_path / "usr/local/lib/spectrod/share/spectrod/upload.md").exists()
    assert (tmp_path / "usr/local/lib/spectrod/share/spectrod/web.md").exists()
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


def install_files(folder):
    """Stage unit and configuration; return what make says on standard error."""
    command = ["make", "install-files", f"DESTDIR={folder}", "BINDIR=/bin"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stderr


def test_the_program_is_on_the_path(tmp_path):
    """A link leads to the program, also after a second installation."""
    for _ in range(2):
        assert install_files(tmp_path) == ""
        assert (tmp_path / "bin" / "spectrod").readlink() == Path("/opt/spectrod/bin/spectrod")


def test_another_program_of_that_name_stays(tmp_path):
    """A program that is no link to ours is not replaced, which make says."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spectrod").write_text("mine")
    said = install_files(tmp_path)
    assert said == f"{tmp_path}/bin/spectrod: is another program, and stays\n"
    assert (tmp_path / "bin" / "spectrod").read_text() == "mine"


@pytest.mark.parametrize(
    ("version", "has_steps"), [("252", False), ("254", True), ("257~rc1", True)]
)
def test_growing_restart_waits_are_installed_where_systemd_knows_them(
    tmp_path, monkeypatch, version, has_steps
):
    """An older systemd would warn of RestartSteps= at each reload."""
    systemctl = tmp_path / "path" / "systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text(f"#!/bin/sh\necho 'systemd {version} ({version}.1-1)'\necho '+PAM'\n")
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", str(systemctl.parent), prepend=":")
    install_files(tmp_path / "root")
    for unit in ("spectrod", "spectrod@"):
        drop_in = tmp_path / f"root/etc/systemd/system/{unit}.service.d/50-restart.conf"
        assert drop_in.exists() == has_steps
