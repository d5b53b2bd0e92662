"""``spectrod tune`` as a user runs it, on the first working device."""

import json
import re
from functools import partial

import numpy as np
import pytest

from spectrod.analysis.stft.stft_select import make_stft_stage
from spectrod.analysis.stft.stft_stage import StftSpec, StftTables
from spectrod.apps.tune import command
from spectrod.cli import machine, main
from spectrod.fft import wisdom
from spectrod.fft.select import make_stage
from spectrod.fft.stage import TransformSpec
from spectrod.lib.errors import DeviceError
from spectrod.opencl.context import Context

QUICK = ["--size", "64", "--kind", "c2c", "--seconds", "0.1"]


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(wisdom, "SHIPPED", tmp_path / "shipped")
    wisdom._known.cache_clear()
    yield
    wisdom._known.cache_clear()


@pytest.fixture
def device(opencl_device, monkeypatch):
    """Make the device under test the only one that the command finds."""
    monkeypatch.setattr(machine, "list_devices", lambda: [opencl_device])
    return opencl_device


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r", "stft", "stft-iq"])
def test_results_of_tuning_are_saved_and_used(device, kind, capsys):
    """The winner is saved, listed, used by the next stage, and gone after forget."""
    if is_of_frames := kind.startswith("stft"):
        spec = StftSpec(60, 60, iq=kind == "stft-iq")
    else:
        spec = TransformSpec(60, kind, kind == "c2r")
    assert main(["tune", "--size", "60", "--kind", kind, "--seconds", "0.3"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:3] == ["60", kind, "single"]
    (saved,) = json.loads(wisdom.file_for(device).read_text())["results"]
    assert wisdom.lookup(device, spec) == (saved["family"], saved["params"])
    context = Context(device)
    tables = StftTables(np.ones(60))
    make = partial(make_stft_stage, tables=tables) if is_of_frames else make_stage
    assert make(context, spec=spec).spec == spec
    context.close()
    assert main(["tune", "--show"]) == 0
    assert re.search(rf"^ +60 +{kind} +single", capsys.readouterr().out, re.MULTILINE)
    assert main(["tune", "--forget"]) == 0
    assert "deleted" in capsys.readouterr().out
    assert wisdom.lookup(device, spec) is None
    assert main(["tune", "--forget"]) == 0
    assert "does not exist" in capsys.readouterr().out


@pytest.mark.slow
def test_an_interruption_keeps_finished_results(device, monkeypatch, tmp_path, capsys):
    """Ctrl-C in the second transform keeps the first one's result and gives exit code 130."""
    search = command.tune

    def interrupted(arena, families, spec, *rest):
        if spec.n == 128:
            raise KeyboardInterrupt
        return search(arena, families, spec, *rest)

    monkeypatch.setattr(command, "tune", interrupted)
    file = tmp_path / "given" / "file.json"
    assert main(["tune", *QUICK, "--size", "64", "128", "--output", str(file)]) == 130
    assert capsys.readouterr().err == "spectrod: interrupted\n"
    assert [result["n"] for result in json.loads(file.read_text())["results"]] == [64]
    assert not wisdom.file_for(device).exists()


BAD_ARGUMENTS = [
    (["--size", "0"], 2, "argument --size: '0': must be at least 1"),
    (["--size", "ten"], 2, "'ten': must be a whole number, such as 4096 or 2^12"),
    (["--size", "2^27"], 2, "n=134217728: must be 1 to 67108864"),
    (["--seconds", "-1"], 2, "'-1': must be above 0 and below 1e+09 s"),
    (["--seconds", "nan"], 2, "'nan': must be a time: 90, 1.5h"),
    (["--kind", "dct"], 2, "invalid choice: 'dct'"),
    (["--kind", "stft", "--size", "2^25"], 2, "n=33554432: must be 16 to 1048576 for frames"),
    (["--show", "--forget"], 2, "not allowed with argument --show"),
    ([*QUICK, "--output", "/proc/nowhere/x.json"], 74, "/proc/nowhere/x.json: "),
    ([*QUICK, "--output", "/dev/null/x.json"], 74, "/dev/null/x.json: "),
]


@pytest.mark.parametrize(("arguments", "exit_code", "text"), BAD_ARGUMENTS)
def test_bad_arguments(device, arguments, exit_code, text, monkeypatch, capsys):
    """A bad argument is one line with the value and the rule, before anything is tuned."""
    monkeypatch.delattr(command, "tune")
    assert main(["tune", *arguments]) == exit_code
    out, err = capsys.readouterr()
    assert text in err
    assert (out, len(err.splitlines())) == ("", 1)
    assert not wisdom.file_for(device).exists()


def test_a_device_that_is_not_there(capsys):
    """The error for an unknown device lists the devices."""
    assert main(["tune", "--device", "Voodoo"]) == DeviceError.exit_code
    assert "device='Voodoo': no OpenCL device fits" in capsys.readouterr().err
