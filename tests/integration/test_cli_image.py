"""``spectrod image`` as a user runs it, against NumPy with the same mask."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectrod.apps.image.image_picture import Picture
from spectrod.apps.image.picture_files import read_picture, write_picture
from spectrod.cli import main

pytestmark = pytest.mark.opencl

ROWS, COLUMNS = 60, 81


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def rng():
    return np.random.default_rng(9)


@pytest.fixture
def device(opencl_device):
    return ["--device", opencl_device.number]


def scene(rng, rows=ROWS, columns=COLUMNS):
    """Make levels from 0 to 255: slope, disc, stripes and noise, different at opposite edges."""
    y, x = np.mgrid[:rows, :columns]
    disc = (x - columns / 3) ** 2 + (y - rows / 2) ** 2 < (rows / 4) ** 2
    levels = (
        60 + 80 * x / columns + 40 * disc + 20 * np.sin(x) + rng.uniform(0, 30, (rows, columns))
    )
    return np.rint(levels).astype(np.uint8)


def gain(shape, inner, outer, low):
    """Return the gain at each frequency of ``numpy.fft.fft2``, radii in cycles per longer side."""
    rows, columns = shape
    side = max(shape)
    y, x = np.fft.fftfreq(rows, 1 / side)[:, None], np.fft.fftfreq(columns, 1 / side)
    square = y**2 + x**2
    return (low(square, outer) if outer else 1.0) - (low(square, inner) if inner else 0.0)


def filtered(plane, mask):
    return np.fft.ifft2(np.fft.fft2(plane.astype(float)) * mask).real


EDGES = {
    "ideal": lambda square, radius: 1.0 * (square <= radius**2 * (1 + 1e-6)),
    "gauss": lambda square, radius: 2.0 ** -(square / radius**2),
    "butterworth,2": lambda square, radius: 1 / (1 + (square / radius**2) ** 2),
    "cosine,6": lambda square, radius: (
        0.5 + 0.5 * np.cos(np.pi * np.clip((np.sqrt(square) - radius) / 6 + 0.5, 0, 1))
    ),
}
PASSES = {
    "low": (["--low", "10"], None, 10.0),
    "high": (["--high", "10cyc"], 10.0, None),
    "band": (["--band", "5", "0.5nyq"], 5.0, 0.5 * COLUMNS / 2),
}


@pytest.mark.forms(1)
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.slow
def test_filters_are_numpys(opencl_device, device, rng, edge, passes, precision):
    """Every filter and edge is within a grey level of NumPy with the same mask."""
    if precision == "double" and not opencl_device.has_fp64:
        pytest.skip("no double precision")
    arguments, inner, outer = PASSES[passes]
    levels = scene(rng)
    write("in.pgm", levels)
    common = ["--edge", edge, "--precision", precision, *device]
    assert main(["image", "filter", "in.pgm", "out.png", *arguments, *common]) == 0
    exact = filtered(levels, gain(levels.shape, inner, outer, EDGES[edge]))
    exact += 0 if passes == "low" else 128
    found = read("out.png")[0].astype(float)
    difference = np.abs(found - np.clip(np.rint(exact), 0, 255))
    assert difference.max() <= 1
    assert (difference == 0).mean() > 0.99


@pytest.mark.parametrize("maxval", [255, 1000, 65535])
@pytest.mark.slow
def test_colour_of_any_depth(device, rng, maxval):
    """Each channel is filtered separately, in the file's own levels."""
    planes = rng.integers(0, maxval, (3, 45, 32), endpoint=True)
    write("in.ppm", planes.astype(np.uint8 if maxval <= 255 else np.uint16), maxval)
    assert main(["image", "filter", "in.ppm", "out.ppm", "--low", "9", *device]) == 0
    mask = gain((45, 32), None, 9.0, EDGES["ideal"])
    found = read_picture(Path("out.ppm"))
    assert found.maxval == maxval
    for plane, result in zip(planes, found.planes, strict=True):
        exact = np.clip(np.rint(filtered(plane, mask)), 0, maxval)
        assert np.abs(result - exact).max() <= 1


@pytest.mark.slow
def test_parts_add_up(device, rng):
    """The low-pass and the high-pass of the same radius add up to the picture."""
    levels = scene(rng)
    write("in.pgm", levels)
    common = ["--edge", "butterworth,1", *device]
    assert main(["image", "filter", "in.pgm", "low.pgm", "--low", "7", *common]) == 0
    assert main(["image", "filter", "in.pgm", "high.pgm", "--high", "7", *common]) == 0
    total = read("low.pgm").astype(int) + read("high.pgm") - 128
    assert np.abs(total - levels).max() <= 1


@pytest.mark.slow
def test_borders(device):
    """Only a border that wraps lets light at one edge reach the opposite one."""
    levels = np.zeros((1, 40, 50), np.uint8)
    levels[:, :, :3] = 255
    write("in.pgm", levels)
    common = ["--low", "5", "--edge", "gauss", *device]
    assert main(["image", "filter", "in.pgm", "wrap.pgm", *common]) == 0
    assert main(["image", "filter", "in.pgm", "mirror.pgm", *common, "--border", "mirror"]) == 0
    assert read("wrap.pgm")[0, :, -1].min() > 40
    assert read("mirror.pgm")[0, :, -1].max() == 0
    assert read("mirror.pgm")[0, :, 0].min() > 80


@pytest.mark.slow
def test_stretched_tones(device, rng):
    """Stretching makes the lowest level black and the highest white."""
    write("in.pgm", scene(rng))
    arguments = ["--high", "5", "--tone", "stretch", *device]
    assert main(["image", "filter", "in.pgm", "out.pgm", *arguments]) == 0
    assert (read("out.pgm").min(), read("out.pgm").max()) == (0, 255)


@pytest.mark.slow
def test_alpha_stays(device, rng):
    """A filter keeps the alpha channel, and the drawn spectrum has none."""
    alpha = rng.integers(0, 256, (20, 30), np.uint8)
    planes = rng.integers(0, 256, (3, 20, 30), np.uint8)
    write_picture(Path("in.png"), Picture(planes, 255, alpha))
    assert main(["image", "filter", "in.png", "out.png", "--low", "3", *device]) == 0
    np.testing.assert_array_equal(read_picture(Path("out.png")).alpha, alpha)
    assert main(["image", "fft2", "in.png", "out.ppm", *device]) == 0
    assert read_picture(Path("out.ppm")).alpha is None


def test_a_picture_may_become_its_own_result(device, rng):
    """IN and OUT may be the same file."""
    write("in.pgm", scene(rng))
    assert main(["image", "filter", "in.pgm", "out.pgm", "--low", "5", *device]) == 0
    assert main(["image", "filter", "in.pgm", "in.pgm", "--low", "5", *device]) == 0
    np.testing.assert_array_equal(read("in.pgm"), read("out.pgm"))


@pytest.mark.parametrize(
    ("shape", "precision"),
    [
        ((1, 1), "single"),
        ((9, 1), "single"),
        ((60, 81), "single"),
        ((60, 81), "double"),
        ((81, 60), "single"),
    ],
)
@pytest.mark.slow
def test_spectra_are_numpys(opencl_device, device, rng, shape, precision):
    """The drawn spectrum is NumPy's, centred, log(1 + magnitude), its largest value white."""
    if precision == "double" and not opencl_device.has_fp64:
        pytest.skip("no double precision")
    levels = scene(rng, *shape)
    write("in.pgm", levels)
    arguments = ["image", "fft2", "in.pgm", "out.pgm", "--precision", precision, *device]
    assert main(arguments) == 0
    exact = np.log1p(np.abs(np.fft.fftshift(np.fft.fft2(levels.astype(float)))))
    assert np.abs(read("out.pgm")[0] - exact * 255 / exact.max()).max() <= 0.51


def test_black_has_a_black_spectrum(device):
    """A black picture's spectrum is drawn without division by zero."""
    write("in.pgm", np.zeros((1, 5, 6), np.uint8))
    assert main(["image", "fft2", "in.pgm", "out.pgm", *device]) == 0
    assert read("out.pgm").max() == 0


BAD = [
    (["in.txt", "out.png", "--low", "5"], 2, "in.txt: not a picture: must be a PGM, PPM or PNG"),
    (["absent.pgm", "out.png", "--low", "5"], 2, "absent.pgm: No such file or directory"),
    (["in.pgm", "out.jpg", "--low", "5"], 2, "out.jpg: a picture's suffix must be one of .pgm"),
    (["in.pgm", "out.ppm", "--low", "5"], 2, "out.ppm: grey is for .pgm, colour for .ppm"),
    (["in.pgm", "no/out.png", "--low", "5"], 74, "no/out.png: No such file or directory"),
    (["in.pgm", "out.png"], 2, "one of the arguments --low --high --band is required"),
    (["in.pgm", "out.png", "--low", "5", "--high", "6"], 2, "not allowed with argument --low"),
    (["in.pgm", "out.png", "--low", "0"], 2, "radius=0: must be from 1e-06 to 1e+09"),
    (["/dev/zero", "out.png", "--low", "3"], 2, "/dev/zero: is a device"),
    (["in.pgm", "out.png", "--low=-3"], 2, "radius=-3: must be from 1e-06 to 1e+09"),
    (["in.pgm", "out.png", "--low", ""], 2, "radius='': must be a number of cycles along"),
    (["in.pgm", "out.png", "--band", "9", "9"], 2, "band=9 9 cycles: must be two radii, lower"),
    (["in.pgm", "out.png", "--band", "9", "0.1nyq"], 2, "band=9 4.05 cycles: must be two radii"),
    (["in.pgm", "out.png", "--low", "5", "--edge", "soft"], 2, "edge='soft': must be ideal, gauss"),
    (["in.pgm", "out.png", "--low", "5", "--edge", "cosine,11"], 2, "width=11 cycles: must be at"),
    (["in.pgm", "out.png", "--low", "5", "--device", "Voodoo"], 69, "device='Voodoo': no OpenCL"),
]


@pytest.mark.parametrize(("arguments", "exit_code", "message"), BAD)
def test_bad_input(rng, capsys, tmp_path, arguments, exit_code, message):
    """Bad input is one line and an exit code, and leaves no file."""
    write("in.pgm", scene(rng))
    Path("in.txt").write_text("levels")
    before = sorted(tmp_path.iterdir())
    assert main(["image", "filter", *arguments]) == exit_code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("spectrod: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert sorted(tmp_path.iterdir()) == before


def test_pictures_too_large_for_the_device(opencl_device, device, rng, capsys, monkeypatch):
    """A picture too large for the device is one line with the limit."""
    write("in.pgm", scene(rng))
    small = replace(opencl_device, max_alloc_bytes=4 * ROWS * COLUMNS - 1)
    monkeypatch.setattr("spectrod.fft.runtime.matching", lambda *_: [small])
    assert main(["image", "filter", "in.pgm", "out.pgm", "--low", "5", *device]) == 69
    assert "cannot hold a buffer of 0.0 MiB: its limit is 0.0 MiB" in capsys.readouterr().err
    assert not Path("out.pgm").exists()


@pytest.mark.slow
def test_help_needs_no_device():
    """``spectrod image --help`` lists the tools and needs no device."""
    command = [sys.executable, "-m", "spectrod", "image", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "filter" in result.stdout
    assert "fft2" in result.stdout


def write(name, planes, maxval=255):
    write_picture(Path(name), Picture(planes if planes.ndim == 3 else planes[None], maxval))


def read(name):
    return read_picture(Path(name)).planes
