"""``spectrod doctor``: what is wrong with this machine, and the command that mends it."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import spectrod
from spectrod.apps.doctor.finding import Finding, Probe, examine, ok
from spectrod.apps.doctor.opencl_finding import probe_engine
from spectrod.apps.doctor.service import (
    probe_daemons,
    probe_unit,
    running_daemons,
    unit_properties,
)
from spectrod.apps.doctor.sound import probe_gpu_nodes, probe_realtime, probe_sound
from spectrod.apps.doctor.system import (
    probe_clock,
    probe_config,
    probe_disks,
    probe_limits,
    probe_packages,
    probe_ports,
)
from spectrod.cli import daemon_rules, options
from spectrod.config import config
from spectrod.config.config import Config
from spectrod.lib.errors import SpectrodError
from spectrod.lib.text import json_text, printable

_MARKS: Final = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}
_INDENT: Final = " " * 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    options.add_config(parser)
    parser.add_argument("--json", action="store_true", help="machine-readable")


def run(args: argparse.Namespace) -> int:
    """Print the findings; the exit code is that of the first failure."""
    findings = [ok("spectrod", f"version {spectrod.__version__}"), *examine(_probes(args.config))]
    if args.json:
        several = [finding.as_dict() for finding in findings]
        print(json_text({"version": spectrod.__version__, "findings": several}, indent=2))
    else:
        _print_text(findings)
    return next((one.exit_code for one in findings if one.state == "fail"), 0)


def _probes(path: str | None) -> Mapping[str, Probe]:
    file = config.find_file(path)
    # With a wrong file the machine is still examined, for the defaults.
    settings, error = Config(), None
    warnings: Iterable[str] = ()
    if file is not None:
        try:
            loaded = config.check_file_layers(str(file), daemon_rules.daemon_rules)
        except SpectrodError as refused:
            error = refused
        else:
            settings = loaded.config
            warnings = (
                f"{loaded.where(setting)}: {text}"
                for setting, text in daemon_rules.warnings(settings)
            )
    daemons = running_daemons()
    ours = [endpoint for one in daemons for endpoint in one.published]
    return {
        "configuration": partial(probe_config, file, error, warnings),
        "env": partial(probe_packages, settings),
        "service": lambda: probe_unit(unit_properties()),
        "daemon": partial(probe_daemons, daemons),
        "ports": partial(probe_ports, settings, ours),
        "recordings": partial(probe_disks, settings, file),
        "OpenCL": partial(probe_engine, settings.engine),
        "GPU": probe_gpu_nodes,
        "sound": partial(probe_sound, settings),
        "real-time threads": probe_realtime,
        "clock": probe_clock,
        "limits": probe_limits,
    }


def _print_text(findings: Sequence[Finding]) -> None:
    for one in findings:
        print(f"{_MARKS[one.state]}  {printable(one.part)}: {printable(one.text)}")
        if one.why:
            print(f"{_INDENT}{printable(one.why)}")
        if one.command:
            print(f"{_INDENT}-> {printable(one.command)}")
    n_fail = sum(one.state == "fail" for one in findings)
    n_warn = sum(one.state == "warn" for one in findings)
    print(f"{n_fail} failed, {n_warn} warnings" if n_fail or n_warn else "nothing is wrong")
