"""``spectrod bench fft`` as a user runs it, on every device that works."""

import json

import pytest

from spectrod.bench import launches, seeds
from spectrod.cli import bench as command
from spectrod.cli import machine, main
from spectrod.errors import DeviceError

SMALL = ["--batch-points", "2^13", "--size", "60", "64", "--peer", "scipy.fft"]


@pytest.fixture(autouse=True)
def device(opencl_device, monkeypatch):
    """The device under test, which the command finds as the only one."""
    monkeypatch.setattr(machine, "list_devices", lambda: [opencl_device])
    return opencl_device


def report(tmp_path, *arguments):
    """Rows of the report of a run that ends well."""
    assert main(["bench", "fft", *SMALL, *arguments, "--json", str(tmp_path / "r.json")]) == 0
    (device,) = json.loads((tmp_path / "r.json").read_text())["devices"]
    return device["rows"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
def test_ours_and_a_peer_are_measured(kind, tmp_path, capsys):
    """Each length has a row of ours and one of the peer's, printed and in the report."""
    rows = report(tmp_path, "--kind", kind)
    assert [(row["n"], row["what"]) for row in rows] == [
        (60, "spectrod"),
        (60, "scipy.fft"),
        (64, "spectrod"),
        (64, "scipy.fft"),
    ]
    for row in rows:
        assert 0.0 < row["relative_l2"] < 2e-7
        assert row["gb_per_s"] == pytest.approx(
            row["copy_share"] * rows[0]["gb_per_s"] / rows[0]["copy_share"], rel=10
        )
    assert len([line for line in capsys.readouterr().out.splitlines() if kind in line]) == 4


@pytest.mark.slow
def test_variants_have_four_ways_to_get_twiddles(tmp_path):
    """Powers of two have the baseline in all its modes; every row has its error."""
    rows = report(tmp_path, "--kind", "c2c", "--variants")
    names = [row["what"] for row in rows if row["n"] == 64]
    for mode in ("table", "sincos", "sin_cos", "native"):
        assert f"radix2 {mode}" in names
    assert {"local", "inplace", "bluestein"} <= set(names)
    assert not [row for row in rows if "failed" in row]


@pytest.mark.slow
def test_the_profile_names_kernels(tmp_path):
    """Shares of a transform's launches add up to all of it."""
    rows = report(tmp_path, "--kind", "c2c", "--size", "17", "--profile")
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    assert len({row["kernel"] for row in rows}) > 1


@pytest.mark.slow
def test_the_table_of_work_groups(tmp_path, monkeypatch):
    """One row a size; the transposes take groups up to 256."""
    monkeypatch.setattr(command, "_GROUPS_EDGE", 32)
    monkeypatch.setattr(launches, "GROUP_ITEMS", (1, 64, 512))
    rows = report(tmp_path, "--workgroups")
    assert [row["group_items"] for row in rows] == [1, 64, 512]
    assert all(row["butterflies"] > 0 for row in rows)
    assert ["tiled" in row and "naive" in row for row in rows] == [True, True, False]


@pytest.mark.slow
def test_the_measurements_of_the_seeds(tmp_path, monkeypatch):
    """Every measurement has rows, and its first row is what the others are compared with."""
    monkeypatch.setattr(seeds, "_ROUNDS_S", 0.0)
    monkeypatch.setattr(seeds, "_EDGES", (32, 64))
    monkeypatch.setattr(seeds, "_BATCHES", (1, 4))
    monkeypatch.setattr(seeds, "_LONG_ELSEWHERE", 1 << 10)
    rows = report(tmp_path, "--seeds")
    groups = {}
    for row in rows:
        groups.setdefault((row["measure"], row["size"]), []).append(row)
    assert len({measure for measure, _ in groups}) == 7
    for members in groups.values():
        assert members[0]["speed"] == 1.0
        assert len(members) > 1


@pytest.mark.slow
def test_an_interruption_leaves_a_report(tmp_path, monkeypatch):
    """Rows up to the interruption are in the file."""
    compare = command.transforms.compare

    def interrupted(arena, spec, names):
        if spec.n == 64:
            raise KeyboardInterrupt
        return compare(arena, spec, names)

    monkeypatch.setattr(command.transforms, "compare", interrupted)
    file = tmp_path / "r.json"
    arguments = ["bench", "fft", *SMALL, "--kind", "c2c", "--json", str(file)]
    assert main(arguments) == 130
    assert [row["n"] for row in json.loads(file.read_text())["devices"][0]["rows"]] == [60, 60]


BAD_ARGUMENTS = [
    (["--size", "0"], 2, "argument --size: '0': must be at least 1"),
    (["--size", "2^27"], 2, "n=134217728: must be 1 to 67108864"),
    (["--batch-points", "1e6"], 2, "'1e6': must be a whole number"),
    (["--peer", "fftw3"], 2, "peer 'fftw3': must be one of scipy.fft, pyFFTW"),
    (["--device", "Voodoo"], 69, "device='Voodoo': no OpenCL device fits"),
    (["--variants", "--profile"], 2, "not allowed with argument"),
    (["--workgroups", "--json", "/proc/x.json"], 74, "/proc/x.json: "),
]


@pytest.mark.parametrize(("arguments", "exit_code", "text"), BAD_ARGUMENTS)
def test_bad_arguments(arguments, exit_code, text, monkeypatch, capsys):
    """One line with the value and the rule."""
    monkeypatch.setattr(launches, "GROUP_ITEMS", ())
    assert main(["bench", "fft", *arguments]) == exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line


def test_a_device_that_does_not_work(device, monkeypatch, capsys):
    """Where none works, its reason is the error."""

    def refuse(*_, **__):
        raise DeviceError("P/D: its compiler refuses every program")

    monkeypatch.setattr(machine, "Context", refuse)
    assert main(["bench", "fft", *SMALL]) == DeviceError.exit_code
    assert capsys.readouterr().err == "spectrod: P/D: its compiler refuses every program\n"
