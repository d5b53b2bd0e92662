"""Audio inputs: how to list them, how to name them lastingly, how to select one."""

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.lib.text import printable_all
from spectrod.source.naming import topic_name
from spectrod.source.soundcard.alsa_cards import SYS, OpenCapture, open_captures, read_card
from spectrod.source.soundcard.capture_process import CaptureProcess

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
        Index in PortAudio's list, which changes whenever devices come or go.
    name, host_api : str
        As PortAudio reports them.
    channels : int
    samplerate : float
        Default sample rate [Hz].
    is_default : bool
        True if the system uses it by default.
    card_id, card_device : str, int or None
        ALSA's name of the card, and the device number on it; "" and None if it is not hardware.
    usb_path, serial : str
        Port that a USB card is plugged into, and its serial number; "" if unknown.
    uri : str
        The name to configure: the most lasting of those that match this input and no other of its
        list.
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
class DeviceSelector:
    """Selector of an input; ``parse_selector`` and ``lasting_selector`` make it."""

    text: str = ""
    keys: tuple[tuple[str, str], ...] = ()
    is_exact: bool = False
    """True if ``name`` must match completely, because a partial match would be another input."""

    def topic_name(self) -> str:
        """Return the topic name, which depends on the text alone, not on the device found."""
        return topic_name(self.text) if self.text else "soundcard"

    def matching(self, inputs: Sequence[InputDevice]) -> list[InputDevice]:
        """Return all matching inputs, the best match first."""
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
    """An input and its capabilities, for a listing to choose from.

    Attributes
    ----------
    device : InputDevice
        Its index is -1 if PortAudio does not list it because it is in use.
    rates : tuple of int
        Supported sample rates among the usual ones [Hz]; empty if not probed.
    formats : tuple of str
        Supported sample formats, in the configuration's words.
    in_use : str
        How a program has it open; "" if none does or that is unknown. An open input is not probed.
    error : str
        Why probing failed.
    """

    device: InputDevice
    rates: tuple[int, ...] = ()
    formats: tuple[str, ...] = ()
    in_use: str = ""
    error: str = ""


def parse_selector(text: str) -> DeviceSelector:
    """Parse the text after ``soundcard:``.

    Parameters
    ----------
    text : str
        "" for the default input; an index; part of a name; or ``KEY=VALUE,...``, all of which must
        match: ``api`` and ``name`` in part, ``card device usb serial`` completely. Matching ignores
        case.

    Returns
    -------
    selector : DeviceSelector

    Raises
    ------
    ConfigError
        If a key is unknown, occurs twice or has no value, or ``device`` is not a number.
    """
    if not re.match(r"[a-z]+=", text):
        return DeviceSelector(text)
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
    return DeviceSelector(text, tuple(pairs))


def choose_input(selector: DeviceSelector, inputs: Sequence[InputDevice]) -> InputDevice:
    """Return the matching input: the first one, if a name is part of several.

    Raises
    ------
    UnavailableError
        If none matches; the error lists the inputs.
    """
    if not inputs:
        raise UnavailableError("soundcard: no audio input on this machine")
    if found := selector.matching(inputs):
        return found[0]
    known = ", ".join(f"{device.index} {device.name!r}" for device in inputs)
    raise UnavailableError(f"{_PREFIX}{selector.text}: no such audio input; there are {known}")


def lasting_selector(device: InputDevice) -> DeviceSelector:
    """Return the selector that finds a lost device again: its ``uri``, never "the default".

    If the URI is only an index, which may belong to another device by then, it selects by name and
    prefers that index.
    """
    selector = parse_selector(device.uri.removeprefix(_PREFIX))
    keys = selector.keys or (("api", device.host_api), ("name", _bare_name(device)))
    return DeviceSelector(selector.text, keys, is_exact=True)


def describe_inputs(
    scanned: Iterable[dict[str, Any]], sys_root: Path = SYS, in_use: Sequence[OpenCapture] = ()
) -> list[InputDevice]:
    """Add to a scan the identity of ALSA cards from sysfs, and a lasting name for each input.

    Parameters
    ----------
    scanned : iterable of dict
        Result of ``CaptureProcess.scan``.
    sys_root : Path
        Mount point of sysfs.
    in_use : sequence of OpenCapture
        Open devices; those that PortAudio does not list, because it cannot open them, are added.

    Returns
    -------
    inputs : list of InputDevice
        In the scan's order, followed by those in use.
    """
    # A device is found by its displayed name, so both are made printable here.
    listed = [InputDevice(**printable_all(device)) for device in scanned]
    names = {device.name for device in listed}
    listed += [_unlisted(capture) for capture in in_use if capture.name not in names]
    inputs = [_with_card(device, sys_root) for device in listed]
    return [replace(device, uri=_uri(device, inputs)) for device in inputs]


def list_inputs(*, probe: bool = False) -> list[ListedInput]:
    """List the audio inputs of this machine, including those in use.

    Parameters
    ----------
    probe : bool
        Query the rates and formats of each input that is not in use; the others are not touched.

    Raises
    ------
    UnavailableError
        If PortAudio's library is missing, or it does not answer within 5 s.
    """
    with contextlib.closing(CaptureProcess()) as process:
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
    """Parse the card and device numbers that PortAudio appends to ALSA's names."""
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
    """Return the first form that matches this input and no other."""
    for text in _forms(device):
        with contextlib.suppress(ConfigError):  # text after a comma in a name may look like a key
            if parse_selector(text).matching(inputs) == [device]:
                return _PREFIX + text
    return f"{_PREFIX}{device.index}"


def _forms(device: InputDevice) -> list[str]:
    """List the forms of an input's name, the most lasting first: serial, port or card, name."""
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
    """Select the inputs that have a name, with or without the hardware numbers."""
    name = name.casefold()
    return [i for i in inputs if name in (i.name.casefold(), _bare_name(i).casefold())]


def _bare_name(device: InputDevice) -> str:
    """Return the name without the card and device numbers, which change."""
    return _HARDWARE.sub("", device.name)
