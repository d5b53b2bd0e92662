import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spectrod.lib.errors import InternalError
from spectrod.opencl import source
from spectrod.opencl.source import kernel_dir, program_source

ROOT = Path(__file__).parents[3]


def lay_out(folder):
    folder.mkdir(parents=True)
    (folder / "common.clh").write_text("// header\n")


def test_a_checkout_has_its_kernels_beside_the_package(tmp_path):
    """In a checkout the kernel folder is ``kernels`` beside ``spectrod``."""
    lay_out(tmp_path / "kernels")
    assert kernel_dir(tmp_path / "spectrod") == tmp_path / "kernels"


def test_a_wheel_has_its_kernels_inside_the_package(tmp_path):
    """In a wheel the kernel folder is ``spectrod/kernels``, whatever is beside the package."""
    lay_out(tmp_path / "kernels")
    lay_out(tmp_path / "spectrod" / "kernels")
    assert kernel_dir(tmp_path / "spectrod") == tmp_path / "spectrod" / "kernels"


def test_an_installation_without_kernels_is_an_internal_error(tmp_path):
    """If neither folder exists, the error names the place and the remedy."""
    with pytest.raises(InternalError, match=r"no OpenCL kernels in .*: install again"):
        kernel_dir(tmp_path / "spectrod")


def test_this_checkout_is_found():
    """Without an argument the kernel folder is that of the imported package."""
    assert (kernel_dir() / "stft_frames.cl").is_file()


def test_a_program_is_defines_then_header_then_file():
    """A program has its defines first, and each file starts at line 1 for the compiler's log."""
    text = program_source("transpose.cl", (("TILE", 32), ("TILE_ROWS", 8)))
    parts = [
        "#define TILE 32\n#define TILE_ROWS 8\n",
        '#line 1 "kernels/common.clh"\n',
        "typedef float scalar;",
        '#line 1 "kernels/transpose.cl"\n',
        "__kernel",
    ]
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)
    assert positions[0] == 0


def test_an_included_header_is_put_in_place(tmp_path, monkeypatch):
    """A header replaces its ``#include``, and the lines around it keep their numbers."""
    monkeypatch.setattr(source, "kernel_dir", lambda: tmp_path)
    (tmp_path / "common.clh").write_text("types\n")
    (tmp_path / "dft.clh").write_text("transforms\n")
    (tmp_path / "a.cl").write_text('// a\n\n#include "dft.clh"\nline 4\n')
    assert program_source("a.cl", ()) == (
        '#line 1 "kernels/common.clh"\ntypes\n#line 1 "kernels/a.cl"\n// a\n\n'
        '#line 1 "kernels/dft.clh"\ntransforms\n#line 4 "kernels/a.cl"\nline 4\n'
    )


def test_no_kernel_uses_inexact_functions():
    """No kernel uses native or half functions, except the one that compares them."""
    for path in set(kernel_dir().rglob("*.cl*")) - {kernel_dir() / "baselines" / "fft_radix2.cl"}:
        code = "\n".join(line.partition("//")[0] for line in path.read_text().splitlines())
        assert not re.search(
            r"\b(native|half)_(cos|sin|tan|exp|log|sqrt|rsqrt|pow|recip|div)", code
        )


@pytest.mark.slow
def test_a_built_wheel_finds_its_kernels(tmp_path):
    """A built wheel contains ``kernels/`` and the tuning results inside the package."""
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    code = "from spectrod.opencl.source import kernel_dir; print(kernel_dir())"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert Path(found) == tmp_path / "site" / "spectrod" / "kernels"
    assert {p.name for p in Path(found).glob("*.cl*")} >= {"common.clh", "stft_frames.cl"}
    assert (Path(found) / "baselines" / "fft_radix2.cl").is_file()
    assert (tmp_path / "site" / "spectrod" / "apps" / "bench" / "command.py").is_file()
