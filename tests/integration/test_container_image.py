"""The OCI image, built here on a Debian of debootstrap's instead of a registry's."""

import subprocess
import sys
from pathlib import Path

import pytest

import spectrod

sys.path.insert(0, str(Path(__file__).parents[1] / "systemd"))
from container import MissingToolError, debian_root, require_tools

pytestmark = [pytest.mark.systemd, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def buildah(tmp_path_factory):
    """Return a function that runs buildah, with a storage of its own, and returns its output."""
    try:
        require_tools()
    except MissingToolError as error:
        pytest.fail(f"tests under a real systemd: {error}")
    folder = tmp_path_factory.mktemp("buildah")
    storage = [f"--root={folder}/storage", f"--runroot={folder}/run", "--storage-driver=overlay"]

    def run(*arguments):
        command = ["buildah", *storage, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{(done.stdout + done.stderr)[-4000:]}"
        return done.stdout

    yield run
    run("rm", "--all")
    run("rmi", "--all", "--force")


@pytest.fixture(scope="module")
def container(buildah, tmp_path_factory):
    """Build the image from this tree, and return the name of a container made of it."""
    base = buildah("from", "scratch").strip()
    subprocess.run(
        ["cp", "--archive", f"{debian_root()}/.", buildah("mount", base).strip()], check=True
    )
    buildah("commit", "--quiet", "--disable-compression", base, "localhost/debian:test")
    wheels = tmp_path_factory.mktemp("wheels")
    download = [sys.executable, "-m", "pip", "download", "--quiet", f"--dest={wheels}"]
    lock = ROOT / "packaging/requirements.lock"
    subprocess.run([*download, "--require-hashes", f"--requirement={lock}"], check=True)
    subprocess.run([*download, "hatchling>=1.27"], check=True)
    buildah(
        *(
            "build",
            "--isolation=chroot",
            "--tag=spectrod",
            f"--file={ROOT}/packaging/Containerfile",
        ),
        *("--build-arg=BASE=localhost/debian:test", f"--volume={wheels}:/wheels:ro"),
        *("--build-arg=PIP_NO_INDEX=1", "--build-arg=PIP_FIND_LINKS=/wheels", ROOT),
    )
    return buildah("from", "spectrod").strip()


def test_the_image_records_and_serves(buildah, container):
    """Its user, who is not root, records by OpenCL, and a daemon in it answers."""

    def run(script):
        return buildah("run", "--isolation=chroot", container, "--", "sh", "-euc", script)

    assert run("spectrod --version; id --user") == f"spectrod {spectrod.__version__}\n10001\n"
    assert "pthread" in run("spectrod devices")
    picture = run("spectrod record signal:sine,1000,-20 --duration 1 -o PNG:- | head -c 4 | od -c")
    assert "P   N   G" in picture
    # Status waits for the daemon, whose control socket comes before its first message.
    status = run(
        "spectrod run --source signal:sine,1000,-20 2>log & daemon=$!\n"
        "until grep --quiet ready: log; do kill -0 $daemon; sleep 0.1; done\n"
        "spectrod ctl status; kill $daemon; wait $daemon"
    )
    assert "signal  running  48 kHz" in status


def test_the_image_names_what_it_runs(buildah, container):
    """The entry point, the user and the volumes are as docs/packages.md says."""
    config = buildah("inspect", "--format", "{{.OCIv1.Config}}", container)
    assert "[spectrod] [run]" in config
    assert "/var/lib/spectrod" in config
