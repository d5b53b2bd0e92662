"""`make test` and `make test-rest` together run every test once, and so does `make test-all`."""

import argparse
import itertools
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MARKERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"][
    "markers"
]
BY_CONFTEST = {"every_driver", "every_form"}


def dry_run(target, user_id="0", tests=""):
    """Return the lines that a target would run."""
    command = ["make", "--dry-run", target, f"ROOT={user_id}", f"TESTS={tests}", "VENV=.", "ARGS="]
    command += ["--old-file=test-needs", "--old-file=rest-needs"]
    # Below another make, this one would say where it is, and take over variables.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, env=environ
    )
    return done.stdout.splitlines()


def expressions(target, user_id="0"):
    """Return the expressions of markers of a target, one for each run of pytest."""
    lines = [
        line for line in dry_run(target, user_id) if re.search("-m pytest|test-release ", line)
    ]
    return [re.findall(r'-m "(.*?)"', line)[-1] for line in lines]


def markers_of(target):
    words = re.findall(r"\w+", " ".join(expressions(target)))
    return sorted(set(words) - {"and", "or", "not"})


TARGETS = pytest.mark.parametrize("targets", [("test", "test-rest"), ("test-all",)], ids="-".join)


def selections(targets, user_id):
    """Yield every combination of markers, and how often the targets select such a test."""
    runs = [run for target in targets for run in expressions(target, user_id)]
    names = markers_of("test-rest")
    for values in itertools.product([False, True], repeat=len(names)):
        markers = dict(zip(names, values, strict=True))
        yield markers, sum(eval(run, {}, markers) for run in runs)  # noqa: S307 - our Makefile


@TARGETS
def test_each_test_runs_once(targets):
    """A test with any combination of markers is selected by exactly one run of pytest."""
    assert {count for _, count in selections(targets, "0")} == {1}


@TARGETS
def test_without_root_only_systemd_is_left_out(targets):
    """Without root, all tests run once but those that need root."""
    for markers, count in selections(targets, ""):
        assert count == (0 if markers["systemd"] else 1)


def test_ci_runs_a_share():
    """``.ci/run`` ends with `make test-share`: `make test-all` less two of three shares."""
    last = (ROOT / ".ci/run").read_text().splitlines()[-1]
    assert last == "make test TESTS=share"
    assert dry_run("test", tests="all") == dry_run("test-all")
    lines = dry_run("test", tests="share")
    assert lines == dry_run("test-share")
    commit = ["git", "rev-parse", "HEAD"]
    head = subprocess.run(commit, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    share = f" --share {int(head[:7], 16) % 3 + 1}/3 "
    assert all(share in line for line in lines)
    assert [line.replace(share, "  ") for line in lines] == dry_run("test-all")


class Item:
    """A test in a file, perhaps with a marker."""

    def __init__(self, file, marker=""):
        self.nodeid = f"{file}::test_a"
        self.marker = marker

    def get_closest_marker(self, name):
        return name == self.marker


def test_each_test_is_in_one_share_and_what_make_test_runs_in_all(conftest):
    """Shares have whole files, about as many each, and lose no test."""
    files = [f"tests/unit/test_{k}.py" for k in range(300)]
    always = [Item(file) for file in files]
    rest = [Item(file, marker) for file in files for marker in conftest.REST]
    shares = [conftest.of_share([*always, *rest], k, 3) for k in (1, 2, 3)]
    assert all(share[: len(always)] == always for share in shares)
    shared = [share[len(always) :] for share in shares]
    assert sorted(map(id, itertools.chain(*shared))) == sorted(map(id, rest))
    file_sets = [{item.nodeid for item in share} for share in shared]
    assert sum(map(len, file_sets)) == len(files)
    assert all(80 < len(one) < 120 for one in file_sets)
    assert {*conftest.REST, "audio"} == {*markers_of("test-rest")}


def test_each_share_has_files_that_run_alone(conftest):
    """No share is empty: pytest fails where it has no test."""
    folder = ROOT / "tests"
    alone = [
        Item(str(path.relative_to(ROOT)), "alone")
        for path in folder.rglob("test_*.py")
        if "pytest.mark.alone" in path.read_text()
    ]
    assert all(conftest.of_share(alone, k, 3) for k in (1, 2, 3))


@pytest.mark.parametrize("text", ["", "/3", "2", "2/", "0/3", "4/3", "-1/3", "1.0/3", "a/b"])
def test_a_share_that_does_not_exist_is_refused(conftest, text):
    """The error names what was given and the rule."""
    with pytest.raises(
        argparse.ArgumentTypeError, match=f"^'{text}': must be K/N with 1 <= K <= N$"
    ):
        conftest.share(text)
    assert conftest.share("3/3") == (3, 3)


@pytest.mark.parametrize("target", ["test-rest", "test-all"])
def test_the_run_of_what_is_alone_has_each_file_of_it(target):
    """The last run of pytest collects the files that have the marker, and no conftest sets it."""
    name = "alone"
    words = dry_run(target)[-1].partition(f' -m "{name}" ')[2]
    files = subprocess.run(
        ["sh", "-c", f"echo {words}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    mark = f"pytest.mark.{name}"
    having = [path for path in (ROOT / "tests").rglob("*.py") if mark in path.read_text()]
    assert sorted(files) == sorted(str(path.relative_to(ROOT)) for path in having)


@pytest.mark.parametrize("target", ["test-oldest", "test-releases", "test-arm64"])
def test_runs_elsewhere_leave_out_what_make_test_does(target):
    """Other versions, releases and processors have the same tests, less those of sound servers."""
    (elsewhere,) = expressions(target)
    (here,) = expressions("test")
    assert elsewhere.removesuffix(" and not opencl") == f"{here} and not audio"


def test_the_order_of_files_is_of_their_names_and_numbers(conftest):
    """Processes agree on the order: files of many kernels first, files of ``unit`` last."""
    paths = [f"tests/{folder}/test_{k}.py" for folder in ("unit", "browser") for k in range(9)]
    compiling = Counter({paths[-1]: conftest.MANY, paths[0]: conftest.MANY - 1})
    ordered, again = (
        sorted(one, key=lambda path: conftest.place(path, compiling))
        for one in (paths, paths[::-1])
    )
    assert ordered == again
    assert ordered[0] == paths[-1]
    assert ["/unit/" in path for path in ordered] == [False] * 9 + [True] * 9


def test_the_tests_of_a_file_and_device_stay_together(conftest, working_devices):
    """Two devices share no kernel, so that two processes may have them."""
    name = "tests/contract/test_a.py::test_b"
    scopes = {
        conftest.scope_of(f"{name}[{k}-{one.label}]") for one in working_devices for k in "ab"
    }
    scopes |= {conftest.scope_of(f"{name}[{k}-numpy]") for k in "ab"}
    assert len(scopes) == 1 + len(working_devices)
    assert conftest.scope_of(name) in scopes


@pytest.mark.parametrize("name", markers_of("test-rest"))
def test_each_marker_exists_and_is_in_use(name):
    """Each marker that `make test` leaves out is registered, and some test or conftest has it."""
    assert any(line.partition(":")[0] == name for line in MARKERS)
    places = (
        [ROOT / "tests" / "conftest.py"]
        if name in BY_CONFTEST
        else (ROOT / "tests").rglob("test_*.py")
    )
    assert any(f"pytest.mark.{name}" in path.read_text() for path in places)


HANGS = """
import ctypes

def test_hangs():
    ctypes.PyDLL(None).sleep(100)  # native code that holds Python's lock

def test_is_not_reached():
    pass
"""


@pytest.mark.slow
def test_native_code_that_hangs_ends_the_run_with_a_report(tmp_path):
    """A test that hangs where no signal is handled is reported by name, and the run ends."""
    (tmp_path / "test_native.py").write_text(HANGS)
    (line,) = (line for line in dry_run("test") if "-m pytest" in line)
    options = shlex.split(line.partition("-m pytest")[2].partition('-m "')[0])
    changed = ["--numprocesses=1", "-pno:cacheprovider", "-ofaulthandler_timeout=0.5"]
    place = [tmp_path, f"--rootdir={tmp_path}", f"--config-file={ROOT / 'pyproject.toml'}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *changed, *place],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "crashed while running 'test_native.py::test_hangs'" in done.stdout
    assert re.search(r"Timeout.*test_native\.py", done.stderr, re.DOTALL)


class Form:
    """A test with parameters and perhaps the marker ``forms``."""

    def __init__(self, limit=None, **params):
        self.params = params
        self.callspec = self
        self.limit = limit

    def get_closest_marker(self, name):
        assert name == "forms"
        return self.limit and pytest.mark.forms(self.limit).mark


@pytest.fixture
def conftest(request):
    """Return the module that chooses forms."""
    return request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))


def test_a_few_forms_have_many_values(conftest):
    """Of 60 combinations ten are kept that have every value of every parameter, always the same."""
    items = [
        Form(10, n=n, kind=kind, double=d) for n in range(10) for kind in "abc" for d in (0, 1)
    ]
    kept = conftest.spread("test_a.py::test_b", items)
    assert len(set(kept)) == 10
    assert kept == conftest.spread("test_a.py::test_b", items)
    assert kept != conftest.spread("test_a.py::test_c", items)
    for name in ("n", "kind", "double"):
        assert {item.params[name] for item in kept} == {item.params[name] for item in items}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 30])
def test_no_more_forms_are_kept_than_wanted(conftest, n):
    """As many are kept as wanted, or all; even if few have every value."""
    assert len(set(conftest.spread("test", [Form(n=0, i=i) for i in range(n)]))) == min(
        n, conftest.FORMS
    )
    assert len(set(conftest.spread("test", [Form(7, n=0, i=i) for i in range(n)]))) == min(n, 7)
