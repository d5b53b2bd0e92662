"""``spectrod selftest``: checks the results on this machine's device."""

import argparse

from spectrod.analysis.engine import open_engine
from spectrod.apps.doctor.selftest import checks, require_all
from spectrod.cli import options
from spectrod.config import config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    options.add_config(parser)
    options.add_engine(parser)


def run(args: argparse.Namespace) -> int:
    """Print one line per check; a failed check is a device error."""
    settings = config.load(args.config, options.flags(args))
    engine = open_engine(settings.engine.engine, settings.engine.device)
    print(f"engine: {engine.name}")
    results = []
    try:
        for check in checks(engine):
            results.append(check)
            verdict = "ok    " if check.passed else "FAILED"
            print(f"{verdict} {check.name}: {check.measured} ({check.allowed})", flush=True)
    finally:
        engine.close()
    require_all(results)
    print(f"all {len(results)} checks passed")
    return 0
