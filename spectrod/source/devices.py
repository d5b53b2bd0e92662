"""Audio inputs: which there are, how each is named for good, which of them is meant."""

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spectrod.errors import ConfigError, UnavailableError
from spectrod.source.alsa_cards import SYS, OpenCapture, open_captures, read_card
from spectrod.source.capture_process import CaptureProcess
from spectrod.source.naming import topic_name
from spectrod.text import printable_all

_KEYS = ("api", "name", "card", "device", "usb", "serial")
_HARDWARE = re.compile(r" *\(hw:(\d+),(\d+)\)$")
_PREFIX = "soundcard:"
_NOT_LISTED = -1


@dataclass(frozen=True, slots=True)
class InputDevice:
    """An audio input.

    Attributes
    ----------
    index : int
        In PortAudio's list, which changes whenever devices come or go.
    name, host_api : str
        As PortAudio says.
    channels : int
    samplerate : float
        Its default [Hz].
    is_default : bool
        Whether the system takes it where none is named.
    card_id, card_device : str, int or None
        ALSA's name of the card, and the device on it; "" and None where it is not one's hardware.
    usb_path, serial : str
        The port that a USB card is plugged into, and its serial number; "" if not known.
    uri : str
        What to put into the configuration: the form that lasts longest of those that name this
        input and no other of its list.
    """

    index: int
    name: str
    host_api: str
    channels: int
    samplerate: float
    is_default: bool
    card_id: str = ""
    card_device: int | None = None
    usb_path: str = ""
    serial: str = ""
    uri: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which input is meant; made by ``parse_wanted`` and ``identity_of``."""

    text: str = ""
    keys: tuple[tuple[str, str], ...] = ()
    is_exact: bool = False
    """A part of a name does not do: that would be another input."""

    def topic_name(self) -> str:
        """Name for topics, of the text alone: the same whichever device is there."""
        return topic_name(self.text) if self.text else "soundcard"

    def among(self, inputs: Sequence[InputDevice]) -> list[InputDevice]:
        """All inputs that are meant, the likeliest first."""
        if not self.text:
            return [i for i in inputs if i.is_default] or list(inputs[:1])
        if self.keys:
            found = [i for i in inputs if all(_fits(i, *pair) for pair in self.keys)]
            if (name := dict(self.keys).get("name")) is not None:
                found = _named(name, found) or ([] if self.is_exact else found)
            return sorted(found, key=lambda i: str(i.index) != self.text)
        by_index = [i for i in inputs if str(i.index) == self.text]
        found = [i for i in inputs if _fits(i, "name", self.text)]
        return by_index or _named(self.text, found) or found


@dataclass(frozen=True, slots=True)
class ListedInput:
    """An input and what is known of it, for who chooses one.

    Attributes
    ----------
    device : InputDevice
        Its index is -1 where PortAudio does not list it, being in use.
    rates : tuple of int
        Sample rates that it takes, of the usual ones [Hz]; empty if it was not asked.
    formats : tuple of str
        Sample formats that it takes, in the configuration's words.
    in_use : str
        How a program has it open; "" if none does, or that cannot be seen. It is then not asked.
    error : str
        Why it was asked in vain.
    """

    device: InputDevice
    rates: tuple[int, ...] = ()
    formats: tuple[str, ...] = ()
    in_use: str = ""
    error: str = ""


def parse_wanted(text: str) -> Wanted:
    """Understand what follows ``soundcard:``.

    Parameters
    ----------
    text : str
        "" for the default input; its index; a part of its name; or ``KEY=VALUE,...`` of which all
        must fit: parts of ``api`` and ``name``, and ``card device usb serial`` as they are. Case
        does not matter.

    Returns
    -------
    wanted : Wanted

    Raises
    ------
    ConfigError
        If a key is not known, is there twice or has no value, or ``device`` is not a number.
    """
    if not re.match(r"[a-z]+=", text):
        return Wanted(text)
    pairs: list[tuple[str, str]] = []
    for part in re.split(r",(?=[a-z]+=)", text):  # names may hold commas
        key, _, value = part.partition("=")
        if key not in _KEYS:
            raise ConfigError(f"{_PREFIX}{text}: {key}: must be one of {', '.join(_KEYS)}")
        if key in dict(pairs):
            raise ConfigError(f"{_PREFIX}{text}: {key}: must be there only once")
        if not value:
            raise ConfigError(f"{_PREFIX}{text}: {key}: must have a value")
        if key == "device" and not value.isdecimal():
            raise ConfigError(f"{_PREFIX}{text}: device={value}: must be a number")
        pairs.append((key, value))
    return Wanted(text, tuple(pairs))


def choose_input(wanted: Wanted, inputs: Sequence[InputDevice]) -> InputDevice:
    """Find the input that is meant: the first one, where a name is part of several.

    Raises
    ------
    UnavailableError
        If there is none, with the list of what there is.
    """
    if not inputs:
        raise UnavailableError("soundcard: no audio input on this machine")
    if found := wanted.among(inputs):
        return found[0]
    known = ", ".join(f"{device.index} {device.name!r}" for device in inputs)
    raise UnavailableError(f"{_PREFIX}{wanted.text}: no such audio input; there are {known}")


def identity_of(device: InputDevice) -> Wanted:
    """Return the name by which a lost device is found again: its ``uri``, never "the default".

    Where that is but an index, which may be another's by then: one of its name, best at that index.
    """
    wanted = parse_wanted(device.uri.removeprefix(_PREFIX))
    keys = wanted.keys or (("api", device.host_api), ("name", _bare_name(device)))
    return Wanted(wanted.text, keys, is_exact=True)


def describe_inputs(
    scanned: Iterable[dict[str, Any]], sys_root: Path = SYS, in_use: Sequence[OpenCapture] = ()
) -> list[InputDevice]:
    """Add to a scan what ALSA's cards show in sysfs, and what to call each input for good.

    Parameters
    ----------
    scanned : iterable of dict
        From ``CaptureProcess.scan``.
    sys_root : Path
        Where sysfs is mounted.
    in_use : sequence of OpenCapture
        Adds those of them that PortAudio leaves out, as it does with what it cannot open.

    Returns
    -------
    inputs : list of InputDevice
        In the scan's order, then those in use.
    """
    # A device is found by the name that is shown, so both are made printable here.
    listed = [InputDevice(**printable_all(device)) for device in scanned]
    names = {device.name for device in listed}
    listed += [_unlisted(capture) for capture in in_use if capture.name not in names]
    inputs = [_with_card(device, sys_root) for device in listed]
    return [replace(device, uri=_uri(device, inputs)) for device in inputs]


def list_inputs(*, probe: bool = False) -> list[ListedInput]:
    """List the audio inputs of this machine, the ones in use too.

    Parameters
    ----------
    probe : bool
        Ask each that is not in use which rates and formats it takes; the others are left alone.

    Raises
    ------
    UnavailableError
        Where PortAudio's library is missing, or does not answer within 5 s.
    """
    with CaptureProcess() as process:
        captures = open_captures()
        inputs = describe_inputs(process.scan(), in_use=captures)
        used = {(capture.card, capture.device): capture for capture in captures}
        return [_look_at(device, used, process if probe else None) for device in inputs]


def _look_at(
    device: InputDevice,
    used: dict[tuple[int, int], OpenCapture],
    process: CaptureProcess | None,
) -> ListedInput:
    hardware = _hardware(device)
    if hardware in used:
        return ListedInput(device, in_use=_how(used[hardware]))
    if process is None:
        return ListedInput(device)
    try:
        answer = process.probe(device.index)
    except UnavailableError as error:
        return ListedInput(device, error=str(error))
    refusal = "" if answer["rates"] else answer["error"]
    return ListedInput(device, tuple(answer["rates"]), tuple(answer["formats"]), error=refusal)


def _how(capture: OpenCapture) -> str:
    if not capture.samplerate:
        return f"by process {capture.pid}"
    return (
        f"{capture.samplerate} Hz, {capture.channels} channels, {capture.format}, "
        f"by process {capture.pid}"
    )


def _unlisted(capture: OpenCapture) -> InputDevice:
    return InputDevice(
        _NOT_LISTED,
        capture.name,
        "ALSA",
        capture.channels,
        float(capture.samplerate),
        is_default=False,
    )


def _hardware(device: InputDevice) -> tuple[int, int] | None:
    """Read the numbers of card and device that PortAudio writes behind ALSA's names."""
    found = _HARDWARE.search(device.name) if device.host_api == "ALSA" else None
    return (int(found[1]), int(found[2])) if found else None


def _with_card(device: InputDevice, sys_root: Path) -> InputDevice:
    hardware = _hardware(device)
    if hardware is None:
        return device
    card = read_card(hardware[0], sys_root)
    return replace(
        device,
        card_id=card.id,
        card_device=hardware[1],
        usb_path=card.usb_path,
        serial=card.serial,
    )


def _uri(device: InputDevice, inputs: Sequence[InputDevice]) -> str:
    """Take the first form by which this input is found, and it alone."""
    for text in _forms(device):
        with contextlib.suppress(ConfigError):  # what follows a comma in a name may look like a key
            if parse_wanted(text).among(inputs) == [device]:
                return _PREFIX + text
    return f"{_PREFIX}{device.index}"


def _forms(device: InputDevice) -> list[str]:
    """Ways to name an input, the longest-lasting first: who, then where, then what."""
    forms = []
    for key, value in (("serial", device.serial), ("usb", device.usb_path)):
        if value:
            forms += [f"{key}={value}", f"{key}={value},device={device.card_device}"]
    if device.card_id:
        forms.append(f"card={device.card_id},device={device.card_device}")
    return [
        *forms,
        f"api={device.host_api},name={_bare_name(device)}",
        f"api={device.host_api},name={device.name}",
    ]


def _fits(device: InputDevice, key: str, value: str) -> bool:
    value = value.casefold()
    if key == "api":
        return value in device.host_api.casefold()
    if key == "name":
        return value in device.name.casefold()
    if key == "device":
        return device.card_device == int(value)
    own = {"card": device.card_id, "usb": device.usb_path, "serial": device.serial}[key]
    return own.casefold() == value


def _named(name: str, inputs: Iterable[InputDevice]) -> list[InputDevice]:
    """Select those that have a name, with or without the numbers of hardware."""
    name = name.casefold()
    return [i for i in inputs if name in (i.name.casefold(), _bare_name(i).casefold())]


def _bare_name(device: InputDevice) -> str:
    """Leave out the numbers of card and device, which change."""
    return _HARDWARE.sub("", device.name)
