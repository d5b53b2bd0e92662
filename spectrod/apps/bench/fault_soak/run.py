"""The run: faults one after the other, then the account of everything."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from spectrod.apps.bench.fault_soak import (
    capture_faults,
    control_faults,
    disk_faults,
    peer_faults,
    system_faults,
)
from spectrod.apps.bench.fault_soak.fault import Fault
from spectrod.apps.bench.fault_soak.journal import LogLine, problems_of
from spectrod.apps.bench.fault_soak.readback import check_rows, count_numbers
from spectrod.apps.bench.fault_soak.resources import DESCRIPTORS_MORE, RSS_MORE_BYTES, growth
from spectrod.apps.bench.fault_soak.site import STOP_S, SoakSite
from spectrod.lib.errors import SpectrodError

FAULTS: Final = (
    *capture_faults.FAULTS,
    *peer_faults.FAULTS,
    *control_faults.FAULTS,
    *disk_faults.FAULTS,
    *system_faults.FAULTS,
)
"""All faults."""
CALM_S: Final = (0.5, 3.0)
"""Shortest and longest time between a recovery and the next fault [s]."""
SMALL_DISK_BYTES: Final = 48 << 20
"""Size of the small disk of a short run; an hour adds ``HOUR_BYTES`` [bytes]."""
HOUR_BYTES: Final = 256 << 20
RATE_PPM: Final = 100.0
"""Largest rate error of the sound server's clock, whose true one is some 40 ppm [ppm]."""
FLAT_S: Final = 600.0
"""Shortest run of which memory and descriptors are judged [s]: shorter ones warm up throughout."""
_SETTLE_S = 3.0
_LOGGED_S = 0.7  # the daemon reports at its next look, twice a second, what has come back
_BUGS = ("Traceback", "please report this")


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault that was injected.

    Attributes
    ----------
    t_s : float
        Since the daemon was well for the first time [s].
    name, detail : str
        Name of the fault, and what it drew.
    recovery_s : float
        From the end of the fault to the moment when all was well [s].
    problems : list of str
        What was not as it should be.
    """

    t_s: float
    name: str
    detail: str
    recovery_s: float
    problems: list[str]


class FaultRun:
    """Injects faults into a site until the time is over.

    Parameters
    ----------
    site : SoakSite
        The running daemon.
    seed : int
        Seed of the order of the faults and of their parameters.
    tell : callable
        Gets a line of progress for each fault.

    Attributes
    ----------
    injections : list of Injection
        Faults so far.
    left_out : dict of str to str
        Faults that cannot be injected here, and why.
    """

    def __init__(self, site: SoakSite, seed: int, tell: Callable[[str], None]) -> None:
        self._site, self._tell = site, tell
        self._rng = random.Random(seed)  # noqa: S311 - not for secrets
        self.injections: list[Injection] = []
        reasons = {fault.name: fault.why_not(site) for fault in FAULTS}
        self.left_out = {name: reason for name, reason in reasons.items() if reason}

    def inject_until(self, end_s: float, only: Iterable[str] = ()) -> None:
        """Inject faults in a random order, each once before any comes again.

        Parameters
        ----------
        end_s : float
            No fault begins after this time of the monotonic clock [s].
        only : iterable of str
            Beginnings of the names to choose from; all by default.
        """
        wanted = tuple(only) or ("",)
        usable = [
            one for one in FAULTS if one.name not in self.left_out and one.name.startswith(wanted)
        ]
        while usable and not self._site.has_ended:
            for fault in self._rng.sample(usable, len(usable)):
                self._site.hold(self._rng.uniform(*CALM_S))
                if self._site.has_ended or time.monotonic() >= end_s:
                    return
                self._inject(fault)

    def _inject(self, fault: Fault) -> None:
        site, problems = self._site, []
        n_lines, begin_s = len(site.journal.lines), time.monotonic()
        site.is_calm = False
        detail = ""
        try:
            detail = fault.inject(site, self._rng)
        except (SpectrodError, OSError) as error:
            problems.append(f"{type(error).__name__}: {error}")
        end_s = time.monotonic()
        if reason := site.wait_until_well(fault.recovers_s):
            problems.append(f"after {fault.recovers_s:g} s {reason}")
        recovery_s = time.monotonic() - end_s
        site.is_calm = True
        site.hold(_LOGGED_S)
        expected = (
            *fault.expected,
            capture_faults.NO_LONGER_SILENT,
            system_faults.CANNOT_COMPILE,
            peer_faults.REFUSED_IN_A_MINUTE,
        )
        problems += problems_of(site.journal.lines[n_lines:], expected)
        one = Injection(begin_s - site.begin_s, fault.name, detail, recovery_s, problems)
        self.injections.append(one)
        self._tell(described(one))


def described(one: Injection) -> str:
    """Return a line on an injection, and one on each problem."""
    line = f"{one.t_s:8.1f} s  {one.name:<24} {one.detail}; well after {one.recovery_s:.1f} s"
    return "\n".join([line, *(f"    PROBLEM: {text}" for text in one.problems)])


def account(site: SoakSite, run: FaultRun) -> dict[str, Any]:
    """Stop the daemon, read everything back, and hold it against the bounds.

    Returns
    -------
    result : dict
        ``faults`` (how many of each), ``injections``, ``left_out``, ``problems``, and the
        measured numbers.
    """
    problems = [f"{one.name}: {text}" for one in run.injections for text in one.problems]
    site.hold(_SETTLE_S)
    status: dict[str, Any] = {"sources": [], "recorders": []}
    try:
        status = site.ask("status")
    except SpectrodError as error:
        problems.append(f"the last status: {error}")
    fed = site.feeder.next_number
    exit_code, stop_s = site.stop()
    site.listener.stop()
    site.resources.stop()
    found = {
        "seconds": round(time.monotonic() - site.begin_s, 1),
        "exit_code": exit_code,
        "stop_s": round(stop_s, 2),
        "subscriber": site.listener.found.facts(),
        "resources": growth(site.resources.samples),
        "series": _series(site),
        "recordings": _recordings(site, status, fed),
        "card_rate": _card_rate(status),
        "log_lines": len(site.journal.lines),
    }
    return {
        "faults": dict(Counter(one.name for one in run.injections)),
        "left_out": run.left_out,
        "problems": problems + problems_in(found, site.journal.lines),
        **found,
        "injections": [asdict(one) for one in run.injections],
        "status": status,
    }


def _series(site: SoakSite) -> list[tuple[float, int, int]]:
    """Return times [s], resident memory [bytes] and descriptors, a few hundred of each."""
    samples = site.resources.samples
    return [
        (round(one.t_s - site.begin_s, 1), one.rss_bytes, one.descriptors)
        for one in samples[:: 1 + len(samples) // 300]
    ]


def _recordings(site: SoakSite, status: dict[str, Any], fed: int) -> dict[str, Any]:
    """Count what each recording holds, beside what the daemon says is lost."""
    lost = {one["name"]: one for one in status["recorders"]}
    result: dict[str, Any] = {}
    for name, source in (("wav", "numbered"), ("flac", "numbered"), ("rows", "tone")):
        folders = sorted(path for path in site.disks.glob(f"*/{name}*/{source}") if path.is_dir())
        result[name] = {"rows": check_rows(folders)}
        if name in lost:
            result[name] |= {key: lost[name][key] for key in ("lost_rows", "lost_samples")}
        if name != "rows":
            paths = [path for one in folders for path in sorted(one.glob(f"*.{name}"))]
            found = count_numbers(paths, max(fed, site.feeder.next_number), site.feeder.torn)
            result[name]["sound"] = asdict(found)
    return result


def _card_rate(status: dict[str, Any]) -> dict[str, float | None]:
    """Return the rate error of the sound card and its uncertainty; None if not known [ppm]."""
    names = ("rate_error_ppm", "rate_uncertainty_ppm")
    found = [one["capture"] for one in status["sources"] if one["name"] == "card"]
    return {name: found[0][name] if found else None for name in names}


def problems_in(found: dict[str, Any], lines: list[LogLine]) -> list[str]:
    """Hold the numbers of a run against their bounds.

    Parameters
    ----------
    found : dict
        What ``account`` measured.
    lines : list of LogLine
        The whole log.

    Returns
    -------
    problems : list of str
        One for each bound that is exceeded.
    """
    problems = []
    if found["exit_code"] != 0:
        problems.append(f"exit code {found['exit_code']}, not 0")
    if found["stop_s"] > STOP_S:
        problems.append(f"the stop took {found['stop_s']} s, more than {STOP_S:g} s")
    if uncounted := found["subscriber"]["uncounted"]:
        problems.append(f"the subscriber missed rows that are in no count, {uncounted} times")
    problems += [f"the subscriber: {text}" for text in found["subscriber"]["errors"]]
    problems += _growth_problems(found["resources"]) if found["seconds"] >= FLAT_S else []
    rate_ppm, half_ppm = found["card_rate"].values()
    if rate_ppm is not None and abs(rate_ppm) - half_ppm > RATE_PPM:
        problems.append(f"the sound card's rate error is {rate_ppm:.1f} +- {half_ppm:.1f} ppm")
    for name, one in found["recordings"].items():
        problems += [f"recording {name}: {text}" for text in _recording_problems(one)]
    bugs = [line.text for line in lines if any(bug in line.text for bug in _BUGS)]
    return problems + [f"the log: {text}" for text in bugs]


def _growth_problems(grown: dict[str, float]) -> list[str]:
    problems = []
    if grown["rss_more_bytes"] > RSS_MORE_BYTES:
        more = grown["rss_more_bytes"] / 2**20
        problems.append(f"memory grew by {more:.1f} MiB, more than {RSS_MORE_BYTES >> 20} MiB")
    if grown["descriptors_more"] > DESCRIPTORS_MORE:
        problems.append(f"descriptors grew by {grown['descriptors_more']:g}")
    return problems


def _recording_problems(one: dict[str, Any]) -> list[str]:
    rows, sound = one["rows"], one.get("sound")
    problems = []
    if rows["uncounted_samples"]:
        problems.append(f"{rows['uncounted_samples']} samples are in no row and no gap")
    if rows["unfinished"]:
        problems.append(f"{rows['unfinished']} unfinished files")
    if sound is None:
        return problems
    if sound["false"] or sound["twice"]:
        problems.append(f"{sound['false']} false samples, {sound['twice']} twice")
    if "lost_samples" in one and sound["missing"] != one["lost_samples"]:
        counted = one["lost_samples"]
        problems.append(f"{sound['missing']} samples are missing, and {counted} are counted")
    return problems
