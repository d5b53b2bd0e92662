"""The alert rules and the dashboard: every metric exists, and each alert fires when it must."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spectrod.daemon.monitoring.families import text_of
from spectrod.daemon.monitoring.metrics import CHECKS, RECORDING_STATES, families_of

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "daemon"))
from test_monitoring import RECORDING, make_snapshot

EXAMPLES = Path(__file__).parents[2] / "examples"
RULES = EXAMPLES / "prometheus" / "spectrod.rules.yml"
RULE_TESTS = EXAMPLES / "prometheus" / "spectrod.rules.test.yml"
DASHBOARD = EXAMPLES / "grafana" / "spectrod.json"
RECORDING_KEYS = ("free_bytes", "kept_files", "kept_bytes", "rows", "lost_rows", "last_byte_utc_ns")
SELECTORS_MIN = 10


def exposition():
    """Return metrics in which every value is known."""
    snapshot = make_snapshot(recorders=[RECORDING | dict.fromkeys(RECORDING_KEYS, 1)])
    return text_of(families_of(snapshot), "prometheus")


def series():
    """Return the names of labels of each series of the exposition."""
    found = {}
    for line in exposition().splitlines():
        if match := re.match(r"(spectrod_\w+)(?:\{(.*)\})? ", line):
            found.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2] or ""))
    return found


def check_expression(text):
    """Check each selector of an expression against the series; return their number."""
    known = series()
    selectors = re.findall(r"(spectrod_\w+)(?:\{([^}]*)\})?", text)
    for name, matchers in selectors:
        assert name in known, f"{name}: no such metric"
        labels = set(re.findall(r"(\w+) *(?:=~|!~|!=|=)", matchers)) - {"instance", "job"}
        assert labels <= known[name], f"{name}: has no label {labels - known[name]}"
    return len(selectors)


def test_the_rules_name_metrics_that_exist():
    """Each selector of the rules names a metric, and labels that it has."""
    expressions = re.findall(r"^ +expr: (.*)$", RULES.read_text("utf-8"), re.MULTILINE)
    assert len(expressions) > SELECTORS_MIN
    assert sum(map(check_expression, expressions)) > SELECTORS_MIN


def test_the_rules_name_states_and_checks_that_exist():
    """Values of state and check in the rules are those of the daemon."""
    states = {*RECORDING_STATES, "starting", "waiting", "failed"}
    matched = re.findall(r'(state|check)=~?"([^"]+)"', RULES.read_text("utf-8"))
    assert matched
    for label, values in matched:
        assert set(values.split("|")) <= (states if label == "state" else set(CHECKS))


def test_the_dashboard_names_metrics_that_exist():
    """Each query of the dashboard names a metric, and its variables are those of the board."""
    board = json.loads(DASHBOARD.read_text("utf-8"))
    names = {variable["name"] for variable in board["templating"]["list"]}
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += [one["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    assert len(queries) > SELECTORS_MIN
    for query in queries:
        assert check_expression(query) >= 1
        assert set(re.findall(r"\$(\w+)", query)) <= names
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_every_alert_has_a_test():
    """Each alert is tested to fire and not to fire, and says what to do."""
    rules, tests = RULES.read_text("utf-8"), RULE_TESTS.read_text("utf-8")
    alerts = re.findall(r"- alert: (\w+)", rules)
    assert rules.count("summary:") == rules.count("action:") == len(alerts)
    for alert in alerts:
        assert len(re.findall(rf"alertname: {alert}\b", tests)) == 2


@pytest.fixture
def promtool():
    """Find promtool: `make test-rest` unpacks it beside Python."""
    found = shutil.which("promtool") or shutil.which("promtool", path=Path(sys.executable).parent)
    if found is None:
        pytest.skip("promtool is missing: make .venv/bin/promtool")
    return found


@pytest.mark.extended
@pytest.mark.parametrize(
    "arguments",
    [("check", "rules", RULES.name), ("check", "config", "prometheus.yml")],
    ids=["rules", "config"],
)
def test_promtool_accepts_the_files(promtool, arguments):
    """Prometheus's own tool finds nothing wrong in the rules and the configuration."""
    done = subprocess.run(
        [promtool, *arguments], cwd=RULES.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.extended
def test_each_alert_fires_when_it_must(promtool):
    """The tests of the rules pass: a daemon that is well has no alert, each fault has its own."""
    done = subprocess.run(
        [promtool, "test", "rules", RULE_TESTS.name],
        cwd=RULES.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.extended
def test_promtool_has_no_complaint_about_the_metrics(promtool):
    """The metrics follow the conventions of names, units and help that promtool checks."""
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=exposition(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
