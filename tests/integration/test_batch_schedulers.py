"""The commands and the manifest of docs/archives.md for Slurm and Kubernetes do what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from spectrod.cli import main

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

from small_archives import FS, sound, write

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/archives.md").read_text()
JOB = """
[job]
name = "test"
output = "{output}"
unit = "hour"
products = ["levels", "flags"]
engine = "numpy"
[deployments.north]
inputs = ["card"]
"""

# Runs each task of an array in turn, with Slurm's variables, and then says the job's number. A job
# that depends on another one runs if that number was given out.
SBATCH = r"""#!/bin/sh
set -u
wrap="" array="" after=""
while [ $# -gt 0 ]; do
    case "$1" in
    --array=*) array="${1#--array=}" ;;
    --dependency=afterany:*) after="${1#--dependency=afterany:}" ;;
    --cpus-per-task=*) ;;
    --wrap) wrap="$2"; shift ;;
    *) echo "sbatch: $1" >&2; exit 1 ;;
    esac
    shift
done
jobs="$(dirname "$0")/jobs"
if [ -n "$after" ]; then grep -qx "$after" "$jobs" || exit 1; fi
number=$((4000 + $(cat "$jobs" 2>/dev/null | wc -l)))
if [ -n "$array" ]; then
    first="${array%-*}" last="${array#*-}"
    for task in $(seq "$first" "$last"); do
        SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MIN=$first SLURM_ARRAY_TASK_MAX=$last \
            SLURM_ARRAY_TASK_COUNT=$((last - first + 1)) sh -c "$wrap" || exit 1
    done
else
    sh -c "$wrap" || exit 1
fi
echo $number >>"$jobs"
echo "Submitted batch job $number"
"""


def block(before, kind):
    """Return the first block of code of a kind after a text of the page."""
    rest = PAGE[PAGE.index(before) :]
    match = re.search(rf"```{kind}\n(.*?)```", rest, re.DOTALL)
    return match[1]


@pytest.fixture
def archive(tmp_path):
    """Return a folder with sound of four hours, with the results of one process in ``whole``."""
    x = sound(9 * 150 * FS)
    for k in range(9):
        write(tmp_path / "card", x[k * 150 * FS : (k + 1) * 150 * FS], 1200 * k)
    for output, name in (("whole", "whole.toml"), ("results", "JOB.toml")):
        (tmp_path / name).write_text(JOB.format(output=output))
    assert main(["batch", "plan", str(tmp_path / "whole.toml")]) == 0
    assert main(["batch", "run", str(tmp_path / "whole.toml"), "--jobs", "1"]) == 0
    return tmp_path


def products(folder):
    return {path.name: path.read_bytes() for path in (folder / "north").iterdir()}


def path_with(*folders):
    """Return the search path with folders before it, and those of ``spectrod`` and Python."""
    own = str(Path(sys.executable).parent)
    return os.pathsep.join([*map(str, folders), own, os.environ["PATH"]])


def test_the_commands_for_slurm(archive):
    """Each line runs as it is written, and the results are those of one process."""
    programs = archive / "programs"
    programs.mkdir()
    (programs / "sbatch").write_text(SBATCH)
    (programs / "sbatch").chmod(0o755)
    environment = os.environ | {"PATH": path_with(programs)}
    number = ""
    lines = block("On Slurm, from a login node", "text").splitlines()
    assert len(lines) == 3
    for line in lines:
        done = subprocess.run(
            ["sh", "-c", line.replace("ARRAY_ID", number)],
            cwd=archive, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = re.search(r"Submitted batch job (\d+)", done.stdout)
        number = found[1] if found else number
    assert "units: 4 done of 4" in done.stdout
    assert products(archive / "results") == products(archive / "whole")


def test_the_manifest_for_kubernetes(archive):
    """It is valid, and its container's command computes every unit once over all indices."""
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    manifest = yaml.safe_load(block("On Kubernetes, an indexed Job", "yaml"))
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    spec = manifest["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert {one["name"] for one in container["volumeMounts"]} == {
        one["name"] for one in pod["volumes"]
    }
    assert container["command"][-1] == f"kubernetes/{spec['completions']}"
    assert main(["batch", "plan", str(archive / "JOB.toml")]) == 0
    mounted = container["volumeMounts"][0]["mountPath"]
    command = [word.replace(mounted, str(archive)) for word in container["command"]]
    for index in range(spec["completions"]):
        environment = os.environ | {"PATH": path_with(), "JOB_COMPLETION_INDEX": str(index)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert ("1 done of 1;" in done.stdout) == (index < 4)
    assert products(archive / "results") == products(archive / "whole")
