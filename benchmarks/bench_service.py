"""What a daemon takes as its unit starts it: processor time and memory, by what it is asked to do.

    python benchmarks/bench_service.py [--seconds 15] [--rounds 3] [--roles ROLE ...] [--json FILE]

The command, the configuration and the variables are those of ``systemd/spectrod.service`` and
``systemd/spectrod.toml``, in folders of its own, and with a test tone at a sound card's pace as the
source, so that the process of a sound card is not among it (``bench_idle.py`` has it). A socket
takes the notifications. In turns:

  idle         nobody subscribes
  one          one subscriber reads all spectra over IPC
  recording    ``[recordings.all]`` with its defaults, nobody subscribes
  ten          ten sources, nobody subscribes
  ten, read    ten sources, one subscriber reads all spectra
  hundreds     300 sources of 8 kHz, nobody subscribes

Of each: time and processor time until it was ready; and, once its kernels are compiled, processor
time, memory of its own (PSS) and resident (RSS), and threads, of all its processes; and what else
the machine did meanwhile, as processors that were busy with others, since what it takes depends on
that.
"""

import argparse
import os
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from _report import ROOT, Report, new_report, write_report
from on_demand import reading

from spectrod.apps.bench.usage import (
    process_tree,
    processor_seconds,
    proportional_bytes,
    resident_bytes,
)
from spectrod.client.control import Control
from spectrod.lib.errors import UnavailableError

TONE = "signal:sine,1000,-20"
ROLES = ("idle", "one", "recording", "ten", "ten, read", "hundreds")

_N_SOURCES = {"ten": 10, "ten, read": 10, "hundreds": 300}
_LIMIT_S = 120.0
_SETTLE_S = 3.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"


def main() -> None:
    """Measure all in turns; print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="each measurement (15)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each (3)")
    parser.add_argument("--roles", nargs="+", choices=ROLES, default=ROLES, metavar="ROLE")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("service")
    taken: dict[str, list[Report]] = {role: [] for role in args.roles}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            for role in args.roles:
                taken[role].append(measure(role, Path(folder), args.seconds))
    print(
        f"{'':10}{'processor':>10}{'PSS':>11}{'RSS':>11}{'threads':>9}{'ready':>9}{'took':>9}"
        f"  others kept busy, of "
        f"{os.cpu_count()}"
    )
    for role, rounds in taken.items():
        median = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        report["results"].append({"what": role, "rounds": rounds} | median)
        print(
            f"{role:10}{median['processor']:>10.2%}{median['pss_mb']:>8.1f} MB"
            f"{median['rss_mb']:>8.1f} MB{median['threads']:>9.0f}"
            f"{median['ready_s']:>7.1f} s{median['start_s']:>7.1f} s  {median['others']:.2f}"
        )
    print(f"load {os.getloadavg()[0]:.1f}; {args.rounds} rounds of {args.seconds:g} s each")
    if args.json:
        write_report(report, args.json)


def measure(role: str, folder: Path, seconds: float) -> Report:
    """Run a daemon for a role, and return what it took."""
    with ExitStack() as stack:
        pid, endpoint, start = stack.enter_context(_service(role, folder))
        if role in ("one", "ten, read"):
            stack.enter_context(reading(endpoint))
        time.sleep(_SETTLE_S)
        tree, begin_s = list(process_tree(pid)), time.monotonic()
        before_s, all_before_s = _tree_seconds(tree), _machine_seconds()
        time.sleep(seconds)
        if list(process_tree(pid)) != tree:
            raise SystemExit(f"{role}: a process of it began or ended: the figure is void")
        took_s = time.monotonic() - begin_s
        own = (_tree_seconds(tree) - before_s) / took_s
        return {
            "processor": own,
            "pss_mb": sum(map(proportional_bytes, tree)) / 1e6,
            "rss_mb": sum(map(resident_bytes, tree)) / 1e6,
            "threads": sum(len(list(Path(f"/proc/{one}/task").iterdir())) for one in tree),
            **start,
            "others": (_machine_seconds() - all_before_s) / took_s - own,
        }


@contextmanager
def _service(role: str, folder: Path) -> Iterator[tuple[int, str, dict[str, float]]]:
    """Start the unit's command and wait for its kernels; yield process, endpoint and start."""
    for name in ("run", "state", "cache"):
        (folder / name).mkdir(exist_ok=True)
    endpoint = f"ipc://{folder}/run/spectrum.ipc"
    config = folder / "spectrod.toml"
    config.write_text(_configuration(role, folder, endpoint), encoding="utf-8")
    command, environ = _of_unit(folder, config)
    with _notified(folder / "notify") as (address, is_ready):
        begin_s = time.monotonic()
        process = subprocess.Popen(
            command,
            env=environ | {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "30000000"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _await(lambda: is_ready.is_set() or process.poll() is not None, role)
            if process.poll() is not None:
                raise SystemExit(f"{role}: {shlex.join(command)}: exit code {process.returncode}")
            start = {
                "ready_s": time.monotonic() - begin_s,
                "start_s": processor_seconds(process.pid),
            }
            with Control(f"ipc://{folder}/run/control-spectrum.ipc", timeout_s=_LIMIT_S) as control:
                _await(lambda: _is_settled(control, role), role)
            yield process.pid, endpoint, start
        finally:
            process.terminate()
            process.wait()


@contextmanager
def _notified(path: Path) -> Iterator[tuple[str, threading.Event]]:
    """Read notifications, as a service manager does; yield the address, and what READY=1 sets."""
    is_ready = threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))

        def read() -> None:
            while message := manager.recv(1 << 16):
                if b"READY=1" in message.split(b"\n"):
                    is_ready.set()

        thread = threading.Thread(target=read)
        thread.start()
        try:
            yield str(path), is_ready
        finally:
            manager.sendto(b"", str(path))
            thread.join()
            path.unlink()


def _of_unit(folder: Path, config: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command and the variables of the system's unit."""
    places = {"%C/spectrod": f"{folder}/cache", "%S": f"{folder}/state"}
    environ = {"PATH": _PATH, "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)}
    # What systemd sets for RuntimeDirectory= and the others.
    environ |= {"RUNTIME_DIRECTORY": f"{folder}/run", "STATE_DIRECTORY": f"{folder}/state"}
    environ |= {"CACHE_DIRECTORY": f"{folder}/cache"}
    if vendors := os.environ.get("OCL_ICD_VENDORS"):
        environ["OCL_ICD_VENDORS"] = vendors
    command: list[str] = []
    for line in (ROOT / "systemd/spectrod.service").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        for specifier, place in places.items():
            value = value.replace(specifier, place)
        if key == "Environment":
            environ |= dict(pair.split("=", 1) for pair in shlex.split(value))
        elif key == "ExecStart":
            _program, *arguments = shlex.split(value)
            command = [sys.executable, "-m", "spectrod", *arguments]
    command[command.index("--config") + 1] = str(config)
    return command, environ


def _configuration(role: str, folder: Path, endpoint: str) -> str:
    """Return the installed example configuration with the role's sources and recordings."""
    text = (ROOT / "systemd/spectrod.toml").read_text(encoding="utf-8")
    for old, new in (
        ('uri = "soundcard"', f'uri = "{TONE}"'),
        ("ipc:///run/spectrod/spectrum.ipc", endpoint),
        (":5556", ":*"),
    ):
        if old not in text:
            raise SystemExit(f"systemd/spectrod.toml: no {old}")
        text = text.replace(old, new)
    if n_sources := _N_SOURCES.get(role):
        text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        begin, end = text.index("[source]"), text.index("\n[", text.index("[source]") + 1)
        table = text[begin:end].replace('\nname = ""', "")  # the table's
        several = [table.replace("[source]", f"[sources.mic{i}]") for i in range(n_sources)]
        if role == "hundreds":
            several = [one.replace("samplerate = 0", "samplerate = 8000") for one in several]
        text = text[:begin] + "\n".join(several) + text[end:]
    if role == "recording":
        text += f'\n[recordings.all]\nfolder = "{folder}/state"\n'
    return text


def _is_settled(control: Control, role: str) -> bool:
    """Tell whether each source has moved to its device, and nothing is computed in vain."""
    sources = control.call("status")["sources"]
    has_moved = all(source["engine"].startswith("opencl:") for source in sources)
    return has_moved and (role == "recording" or not any(one["computed"] for one in sources))


def _await(is_so: Callable[[], bool], role: str) -> None:
    deadline_s = time.monotonic() + _LIMIT_S
    while True:
        try:
            if is_so():
                return
        except UnavailableError:
            pass
        if time.monotonic() > deadline_s:
            raise SystemExit(f"{role}: not settled within {_LIMIT_S:g} s")
        time.sleep(0.2)


def _tree_seconds(tree: list[int]) -> float:
    return sum(map(processor_seconds, tree))


def _machine_seconds() -> float:
    """Processor time that all processes have taken so far [s]."""
    fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
