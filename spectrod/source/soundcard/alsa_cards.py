"""ALSA's sound cards as Linux shows them: stable names in sysfs, open streams in procfs."""

import re
from dataclasses import dataclass
from pathlib import Path

from spectrod.lib.text import printable

SYS = Path("/sys")
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Card:
    """Properties that identify a card after its number has changed; "" if unknown.

    Attributes
    ----------
    id : str
        ALSA's identifier, such as ``PCH``; stable over restarts while the set of cards is the same.
    usb_path : str
        Port that the card is plugged into, such as ``1-1.2``.
    serial : str
        Serial number that a USB device reports.
    """

    id: str = ""
    usb_path: str = ""
    serial: str = ""


@dataclass(frozen=True, slots=True)
class OpenCapture:
    """A capture device that a program has open.

    Attributes
    ----------
    card, device : int
        As in ``hw:CARD,DEVICE``.
    name : str
        PortAudio's name of the device.
    channels : int
        0 if the device is open but not set up; the same holds for the fields below.
    samplerate : int
        [Hz].
    format : str
        ALSA's name, such as ``S16_LE``.
    pid : int
        Process id of the program.
    """

    card: int
    device: int
    name: str
    channels: int = 0
    samplerate: int = 0
    format: str = ""
    pid: int = 0


def read_card(number: int, sys_root: Path = SYS) -> Card:
    """Read the identity of a card; all fields are empty if the card does not exist.

    ``/sys/class/sound/cardN/id`` and the USB device that ``cardN/device``, its interface, is of
    (Linux, Documentation/ABI/stable/sysfs-bus-usb and ABI/testing/sysfs-class-sound).
    """
    folder = sys_root / "class/sound" / f"card{number}"
    usb = _usb_device((folder / "device").resolve())
    if usb is None:
        return Card(printable(_text(folder / "id")))
    serial = printable(_text(usb / "serial"))
    # Some vendors give every device the same serial; an all-zero one is such a case.
    return Card(printable(_text(folder / "id")), usb.name, serial if serial.strip("0") else "")


def open_captures(proc_root: Path = PROC) -> list[OpenCapture]:
    """List the capture devices that any program has open.

    ``/proc/asound/cardN/pcmMc/subS/{status,hw_params}`` (Linux, Documentation/sound/designs/
    procfs.rst); the first open substream of each device counts.
    """
    found = []
    for folder in sorted((proc_root / "asound").glob("card[0-9]*/pcm[0-9]*c")):
        card, device = int(folder.parent.name[4:]), int(folder.name[3:-1])
        for substream in sorted(folder.glob("sub*")):
            status = _fields(substream / "status")
            if "state" in status:
                name = f"{_card_name(card, proc_root)}: {_fields(folder / 'info').get('name', '')}"
                hardware = _fields(substream / "hw_params")
                found.append(
                    OpenCapture(
                        card,
                        device,
                        printable(f"{name} (hw:{card},{device})"),
                        _number(hardware.get("channels", "")),
                        _number(hardware.get("rate", "")),
                        printable(hardware.get("format", "")),
                        _number(status.get("owner_pid", "")),
                    )
                )
                break
    return found


def _usb_device(folder: Path) -> Path | None:
    """Find the USB device that is, or contains, the card's interface."""
    return next((path for path in (folder, folder.parent) if (path / "idVendor").exists()), None)


def _card_name(number: int, proc_root: Path) -> str:
    """Read a card's short name, from `` 0 [PCH            ]: HDA-Intel - HDA Intel PCH``."""
    cards = _text(proc_root / "asound/cards")
    line = re.search(rf"^ *{number} \[.*?\]: .*? - (.*)$", cards, re.MULTILINE)
    return line[1] if line else f"card {number}"


def _fields(path: Path) -> dict[str, str]:
    lines = (line.partition(":") for line in _text(path).splitlines())
    return {key.strip(): value.strip() for key, colon, value in lines if colon}


def _number(text: str) -> int:
    """Parse the leading number, of up to 9 digits, of ``48000 (48000/1)``; 0 if there is none."""
    digits = re.match(r"[0-9]{1,9}(?![0-9])", text)
    return int(digits[0]) if digits else 0


def _text(path: Path) -> str:
    """Read a sysfs or procfs file; "" if it is missing or not readable."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\n")
    except OSError:
        return ""
