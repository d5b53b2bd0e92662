"""Every fuzz target on its seeds, the committed corpus, seeded mutations, and large inputs.

``run.py`` searches further, guided by coverage; see CONTRIBUTING.md.
"""

import json
import logging
import os
import platform
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import fuzzing
from fuzzing import CORPUS, MODULES, LimitError, Limits, corpus_line, corpus_of, large_inputs
from mutation import havoc

HERE = Path(__file__).parent
N_MUTATIONS = 150
N_GUIDED = 400
CORPUS_MAX_BYTES = 100_000

HAS_ATHERIS = (
    sys.platform == "linux"
    and platform.machine() == "x86_64"
    and platform.python_implementation() == "CPython"
    and sys.version_info < (3, 14)
)
"""Platforms with a wheel of Atheris, as in the group "fuzz" of pyproject.toml."""


@pytest.fixture(autouse=True)
def _no_log(caplog):
    """Disable the log: thousands of warnings take more time and memory than the reading."""
    caplog.set_level(logging.CRITICAL, "spectrod")


@pytest.fixture
def limits():
    """Return the limits of every input."""
    made = Limits()
    yield made
    made.close()


@pytest.fixture(scope="module", params=MODULES)
def target(request):
    """Return each target in turn."""
    return request.param, fuzzing.load(request.param)


class FuzzServer:
    """Command lines of ``run.py``, in processes that share their imports."""

    def __init__(self, folder):
        self._output, self._errors = folder / "output", folder / "errors"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, HERE / "run.py", "--serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "TMPDIR": os.fspath(folder)},
            )

    def run(self, *arguments):
        """Return the exit code and the output."""
        line = json.dumps([os.fspath(one) for one in (self._output, *arguments)])
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._errors.read_text(errors="replace")
        return int(answer), self._output.read_text(errors="replace")

    def close(self):
        """End it, and check that it ends well."""
        self._process.communicate()
        assert self._process.returncode == 0


def serving(tmp_path_factory):
    server = FuzzServer(tmp_path_factory.mktemp("fuzz"))
    yield server
    server.close()


reader = pytest.fixture(serving, scope="module", name="reader")
"""Server without Atheris, whose code is slower."""
searcher = pytest.fixture(serving, scope="module", name="searcher")
"""Server of guided searches."""


def run(*arguments):
    return subprocess.run(
        [sys.executable, HERE / "run.py", *arguments],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
    )


def test_seeds_and_corpus_are_read_or_refused(target, limits):
    """Seeds are accepted, and inputs of earlier defects are read or refused."""
    name, one = target
    for data in [*one.seeds(), *corpus_of(name).values()]:
        limits.run(one.check, data)


@pytest.mark.slow
def test_mutated_inputs_are_read_or_refused(target, limits):
    """Inputs mutated by structure and by bytes, from seeds and corpus, are read or refused."""
    name, one = target
    inputs = [*one.seeds(), *corpus_of(name).values()]
    rng = random.Random(14)  # noqa: S311 - no secrets
    for n in range(N_MUTATIONS):
        data = rng.choice(inputs)
        for _ in range(rng.randint(1, 3)):
            data = one.mutate(data, rng) if n % 4 else one.repair(havoc(data, rng))
        limits.run(one.check, data)


@pytest.mark.forms(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_large_inputs_take_little_time_and_memory(name, reader, tmp_path):
    """In a separate process, 1 MB of input takes no more than 1 s and 100 MB."""
    code, output = reader.run(name, "--large", "--findings", tmp_path)
    assert code == 0, output
    assert re.search(rf"^{name}: \d+ inputs, slowest", output, re.MULTILINE), output


@pytest.mark.forms(3)
@pytest.mark.slow
@pytest.mark.skipif(not HAS_ATHERIS, reason="Atheris has no wheel for this platform")
@pytest.mark.parametrize("name", MODULES)
def test_a_guided_search_finds_nothing(name, searcher, tmp_path):
    """A short guided search, the start of a long one by ``run.py``, finds no defect."""
    code, output = searcher.run(name, "--runs", str(N_GUIDED), "--findings", tmp_path)
    assert code == 0, output
    n_runs = re.search(r"Done (\d+) runs", output)
    assert n_runs, output
    # All seeds are tried, also where they are more.
    assert int(n_runs[1]) >= N_GUIDED


# ---- the harness itself


def test_an_input_that_does_not_end_is_stopped(limits):
    """An input that does not end is stopped, even if the decoder catches every exception."""

    def spin(_):
        while True:
            try:
                time.perf_counter()
            except Exception:  # noqa: BLE001, S112 - a decoder that goes too far
                continue

    limits.run(len, b"")
    with pytest.raises(LimitError, match=r"was stopped after 1 s"):
        limits.run(spin, b"x")


def test_an_input_that_takes_much_memory_is_found():
    """An input's memory is measured in a new process, as only new peaks are visible."""
    assert len(b"x" * 300_000_000) == 300_000_000
    program = (
        "import fuzzing; limits = fuzzing.Limits(); limits.run(len, b''); "
        "limits.run(lambda data: len(b'x' * 90_000_000), b''); "
        "limits.run(lambda data: len(b'x' * 130_000_000), b'')"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 1
    assert "0 bytes took 1" in done.stderr
    assert "LimitError" in done.stderr


def test_a_defect_is_reported_and_kept(tmp_path):
    """A file that breaks the check ends the run with exit code 1."""
    (tmp_path / "input").write_bytes(b"P5\n1 1\n255\n\0")
    done = run("pnm", tmp_path / "input", "--findings", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pnm: 1 inputs, slowest" in done.stdout


def test_the_corpora_are_small_and_in_order():
    """Each corpus file belongs to a target, and all of them are tens of kilobytes."""
    names = {path.stem for path in CORPUS.glob("*.txt")}
    assert names <= MODULES.keys()
    assert sum(path.stat().st_size for path in CORPUS.iterdir()) <= CORPUS_MAX_BYTES


@pytest.mark.parametrize("data", [b"", b"\0\xff", bytes(5000)])
def test_a_corpus_line_holds_an_input(data, monkeypatch, tmp_path):
    """A corpus line holds short inputs as digits and long ones compressed."""
    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path)
    (tmp_path / "pnm.txt").write_text(f"# note\n{corpus_line('a', data)}\n")
    assert corpus_of("pnm") == {"a": data}


@pytest.mark.parametrize("line", ["a hex", "a hex 00 00", "a text 00", "a hex 00\na hex 01"])
def test_a_broken_corpus_line_is_named(line, monkeypatch, tmp_path):
    """A broken corpus line is an error, so that no input is skipped silently."""
    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path)
    (tmp_path / "pnm.txt").write_text(line)
    with pytest.raises(ValueError, match=r"pnm.txt: a .*must be NAME hex\|zlib TEXT"):
        corpus_of("pnm")


def test_the_same_seed_makes_the_same_mutations(target):
    """The same seed gives the same mutations, so a defect can be reproduced."""
    _, one = target
    seed = one.seeds()[0]
    made = [
        [one.mutate(seed, rng) for _ in range(20)]
        for rng in (random.Random(1), random.Random(1))  # noqa: S311 - no secrets
    ]
    assert made[0] == made[1]
    assert len(set(made[0])) > 3


def test_large_inputs_are_of_one_megabyte(target):
    """Large inputs have one megabyte, whatever the seeds."""
    _, one = target
    data = next(large_inputs(one, [seed for seed in one.seeds() if seed][:1]))
    assert 500_000 < len(data) <= 1_000_100
