"""Sound cards: PortAudio, permissions, real-time threads."""

import grp
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from spectrod.apps.doctor.finding import Finding, fail, ok, warn
from spectrod.config.config import Config
from spectrod.lib.errors import UnavailableError
from spectrod.source.kinds import find_kind
from spectrod.source.soundcard.devices import list_inputs

REALTIME_PRIORITY: Final = 5
"""Priority that the unit of systemd allows (LimitRTPRIO=)."""
_DEVICES: Final = Path("/dev/snd")


def needs_sound_card(config: Config) -> bool:
    """Return whether a source of the configuration is a sound card."""
    return any(find_kind(table.uri)[0].prefix == "soundcard" for table in config.all_sources)


def probe_sound(config: Config, devices: Path = _DEVICES) -> Iterable[Finding]:
    """Find out whether PortAudio lists an input, and whether this user may open the cards."""
    is_needed = needs_sound_card(config)
    denied = [node for node in sorted(devices.glob("pcmC*D*c")) if not _may_open(node)]
    if denied:
        yield _denied(denied, is_needed=is_needed)
    try:
        inputs = list_inputs()
    except UnavailableError as error:
        yield _graded(
            "PortAudio",
            str(error),
            "sound cards cannot be recorded",
            "sudo apt-get install libportaudio2",
            is_needed=is_needed,
        )
        return
    if inputs:
        yield ok("audio inputs", f"{len(inputs)}, first {inputs[0].device.name}")
    else:
        yield _graded(
            "audio inputs",
            "none",
            "a source that is a sound card waits until there is one",
            "arecord -l; spectrod devices",
            is_needed=is_needed,
        )


def _may_open(node: Path) -> bool:
    return os.access(node, os.R_OK | os.W_OK)


def _denied(nodes: Sequence[Path], *, is_needed: bool) -> Finding:
    group = _group_of(nodes[0])
    text = f"this user may not open {', '.join(map(str, nodes))}"
    why = f"the nodes are for the group {group}; a new group counts from the next login on"
    return _graded("sound cards", text, why, f"sudo usermod -aG {group} $USER", is_needed=is_needed)


def _group_of(path: Path) -> str:
    try:
        return grp.getgrgid(path.stat().st_gid).gr_name
    except (OSError, KeyError):
        return "audio"


def _graded(part: str, text: str, why: str, command: str, *, is_needed: bool) -> Finding:
    return (fail if is_needed else warn)(part, text, why, command)


def probe_gpu_nodes(folder: Path = Path("/dev/dri")) -> Iterator[Finding]:
    """Find out whether this user may open the GPUs."""
    denied = [node for node in sorted(folder.glob("renderD*")) if not _may_open(node)]
    if denied:
        group = _group_of(denied[0])
        yield warn(
            "GPU",
            f"this user may not open {', '.join(map(str, denied))}",
            f"the nodes are for the group {group}; OpenCL does not see the GPU",
            f"sudo usermod -aG {group} $USER",
        )


def probe_realtime() -> Iterator[Finding]:
    """Find out whether threads of this user may have a real-time priority, by trying it."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REALTIME_PRIORITY))
    except OSError as error:
        line = f"@audio - rtprio {REALTIME_PRIORITY}"
        yield warn(
            "real-time threads",
            f"not allowed for this user: {error.strerror}",
            "callbacks of a sound card come late on a busy machine; the service has its own limit",
            f"echo '{line}' | sudo tee /etc/security/limits.d/spectrod.conf",
        )
        return
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    yield ok("real-time threads", f"priority {REALTIME_PRIORITY} is allowed")
