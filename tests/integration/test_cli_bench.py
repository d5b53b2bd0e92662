"""``spectrod bench fft`` as a user runs it, on every device that works."""

import json
from math import log2

import pytest

from spectrod.bench import launches, seeds
from spectrod.cli import bench as command
from spectrod.cli import machine, main
from spectrod.errors import DeviceError

SMALL = ["--batch-points", "2^13", "--size", "60", "64", "--peer", "scipy.fft"]

# Operations and bytes of one transform of n values in single precision, by hand.
WORK = {
    "c2c": lambda n: (5 * n * log2(n), 16 * n),
    "r2c": lambda n: (2.5 * n * log2(n), 4 * n + 8 * (n // 2 + 1)),
    "c2r": lambda n: (2.5 * n * log2(n), 4 * n + 8 * (n // 2 + 1)),
}


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
        flops, n_bytes = WORK[kind](row["n"])
        assert row["batch"] == (1 << 13) // row["n"]
        scale = row["batch"] / row["seconds"] / 1e9
        assert row["gflop_per_s"] == pytest.approx(flops * scale)
        assert row["gb_per_s"] == pytest.approx(n_bytes * scale)
    for ours, peer in (rows[:2], rows[2:]):
        assert peer["speed"] == pytest.approx(ours["seconds"] / peer["seconds"])
        # One copy is measured in turns with both.
        assert peer["copy_share"] / ours["copy_share"] == pytest.approx(peer["speed"])
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
    (["--batch-points", "2^62", "--peer"], 69, "cannot hold a buffer of 35184372088832.0 MiB"),
    (["--peer", "fftw3"], 2, "peer 'fftw3': must be one of scipy.fft, pyFFTW"),
    (["--device", "Voodoo"], 69, "device='Voodoo': no OpenCL device fits"),
    (["--variants", "--profile"], 2, "not allowed with argument"),
    (["--peer", "--json", "/proc/x.json"], 74, "/proc/x.json: "),
    (["--peer", "--json", "/proc"], 74, "/proc: is a folder"),
]


@pytest.mark.parametrize(("arguments", "exit_code", "text"), BAD_ARGUMENTS)
def test_bad_arguments(arguments, exit_code, text, monkeypatch, capsys):
    """One line with the value and the rule, before anything is measured."""
    monkeypatch.delattr(command.transforms, "measure")
    assert main(["bench", "fft", *arguments]) == exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line


def test_a_report_stays_where_nothing_is_measured(tmp_path):
    """A mistake on the command line does not cost the last report."""
    file = tmp_path / "r.json"
    file.write_text("precious")
    assert main(["bench", "fft", "--peer", "fftw3", "--json", str(file)]) == 2
    assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]


def test_a_device_that_does_not_work(device, monkeypatch, capsys):
    """Where none works, its reason is the error."""

    def refuse(*_, **__):
        raise DeviceError("P/D: its compiler refuses every program")

    monkeypatch.setattr(machine, "Context", refuse)
    assert main(["bench", "fft", *SMALL]) == DeviceError.exit_code
    assert capsys.readouterr().err == "spectrod: P/D: its compiler refuses every program\n"
