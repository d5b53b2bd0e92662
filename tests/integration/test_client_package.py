"""The client's own distribution, which is small and sufficient to read a daemon."""

import json
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2] / "packaging" / "client"

READER = """
import importlib.util, json, sys
from spectrod.client import Control, latest, subscribe

endpoint, control, server_key, key_file = sys.argv[1:]
heavy = ("pyopencl", "sounddevice", "soundfile", "PIL", "scipy")
keys = {"server_key": server_key, "key_file": key_file}
with subscribe(endpoint, timeout_s=20.0, replay_from=control, **keys) as frames:
    numbers = [next(frames).header.seq for _ in range(30)]
    peak_hz = float(next(frames).f[next(frames).values.argmax()])
with Control(control, **keys) as requests:
    version = requests.call("status")["daemon"]["version"]
with latest(control, "spec/tone/0/dbfs/", timeout_s=20.0, **keys) as newest:
    newest_seq = next(newest).header.seq
print(json.dumps({
    "steps": sorted({b - a for a, b in zip(numbers, numbers[1:])}),
    "is_newer": newest_seq > numbers[-1],
    "peak_hz": peak_hz,
    "version": version,
    "heavy": [name for name in heavy if importlib.util.find_spec(name)],
    "daemon": importlib.util.find_spec("spectrod.daemon") is not None,
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.mark.slow
def test_the_wheel_has_only_the_modules_that_the_client_imports(wheel):
    """The wheel contains the modules that the names of the client load, and the licence."""
    code = (
        "import sys; from spectrod.client import *; "
        "print(*(m for m in sys.modules if m.startswith('spectrod')))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    modules = {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in names
        if name.endswith(".py")
    }
    assert modules == set(loaded.stdout.split())
    assert [name for name in names if not name.endswith(".py")] == ["spectrod/client/LICENSE"]


def test_it_requires_the_programs_versions():
    """The client requires the program's versions of its libraries and no other libraries."""
    own, whole = (
        tomllib.loads(path.read_text())["project"]["dependencies"]
        for path in (PROJECT / "pyproject.toml", PROJECT.parents[1] / "pyproject.toml")
    )
    assert [name.split(">=")[0] for name in own] == ["msgspec", "numpy", "pyzmq"]
    assert set(own) <= set(whole)


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_it_reads_a_daemon_without_opencl_and_portaudio(wheel, tmp_path, run_daemon):
    """The client, installed by pip alone, reads frames, replays and controls, with keys."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", wheel]
    subprocess.run(install, check=True, capture_output=True)
    (tmp_path / "clients").mkdir()
    for name, folder in (("server", "server"), ("reader", "clients")):
        make = "from pathlib import Path; from spectrod.wire.keys import make_keys; import sys; "
        make += "make_keys(Path(sys.argv[1]), sys.argv[2], 'read')"
        subprocess.run([python, "-I", "-c", make, tmp_path / folder, name], check=True)
    config = tmp_path / "spectrod.toml"
    config.write_text(
        f"""
        source = {{ uri = "signal:sine,3000,-20", name = "tone" }}
        engine = {{ engine = "numpy" }}
        publish = {{ endpoints = ["tcp://127.0.0.1:*"] }}
        control = {{ endpoints = ["tcp://127.0.0.1:*"] }}
        [security]
        server_key = "{tmp_path}/server/server.key"
        client_keys = "{tmp_path}/clients"
        require = "always"
        """
    )
    daemon = run_daemon(config)
    keys = [tmp_path / "server" / "server.pub", tmp_path / "clients" / "reader.key"]
    command = [python, "-I", "-c", READER, daemon.endpoint, daemon.control, *keys]
    read = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert (read["steps"], read["is_newer"], read["peak_hz"]) == ([1], True, 3000.0)
    assert (read["heavy"], read["daemon"]) == ([], False)
    assert read["version"]
