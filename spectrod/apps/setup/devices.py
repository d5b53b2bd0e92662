"""``spectrod devices``: audio inputs and OpenCL devices, and the ones that would be used."""

import argparse
import dataclasses
from typing import Any

from spectrod.analysis.opencl_engine import open_opencl
from spectrod.cli import options
from spectrod.config import config
from spectrod.lib.errors import SpectrodError
from spectrod.lib.text import json_text, printable_all
from spectrod.opencl.devices import DeviceInfo, list_devices
from spectrod.source.soundcard.devices import ListedInput, choose_input, list_inputs, parse_selector


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    options.add_config(parser)
    parser.add_argument("--json", action="store_true", help="machine-readable")
    options.add_engine(parser)


def run(args: argparse.Namespace) -> int:
    """Print both lists; a list that fails shows the reason, and the command succeeds."""
    settings = config.load(args.config, options.flags(args))
    found = {"audio_inputs": _audio_inputs(settings), "opencl_devices": _opencl_devices(settings)}
    if args.json:
        print(json_text(found, indent=2))
    else:
        _print_text(printable_all(found))
    return 0


def _audio_inputs(settings: config.Config) -> dict[str, Any]:
    kind, _, selector = settings.source.uri.partition(":")
    try:
        listed = list_inputs(probe=True)
    except SpectrodError as error:
        return {"devices": [], "error": str(error)}
    inputs = [entry.device for entry in listed]
    try:
        used = choose_input(parse_selector(selector if kind == "soundcard" else ""), inputs)
    except SpectrodError as error:
        return {
            "devices": [_input_as_dict(entry, used=False) for entry in listed],
            "error": str(error),
        }
    return {
        "devices": [_input_as_dict(entry, used=entry.device == used) for entry in listed],
        "error": None,
    }


def _input_as_dict(entry: ListedInput, *, used: bool) -> dict[str, Any]:
    of_device = dataclasses.asdict(entry.device)
    of_entry = dataclasses.asdict(entry)
    del of_entry["device"]
    return of_device | of_entry | {"used": used}


def _opencl_devices(settings: config.Config) -> dict[str, Any]:
    try:
        devices = list_devices()
    except SpectrodError as error:
        return {"devices": [], "error": str(error)}
    try:
        engine = open_opencl(settings.engine.device)
    except SpectrodError as error:
        return {"devices": [_as_dict(device, None) for device in devices], "error": str(error)}
    used = engine.context.device
    engine.close()
    return {"devices": [_as_dict(device, used) for device in devices], "error": None}


def _as_dict(device: DeviceInfo, used: DeviceInfo | None) -> dict[str, Any]:
    return {
        "number": device.number,
        "name": device.label,
        "kind": device.kind,
        "compute_units": device.compute_units,
        "driver": device.driver,
        "used": device == used,
    }


def _print_text(found: dict[str, Any]) -> None:
    print("Audio inputs (source.uri = 'soundcard:...'); * is the one used")
    for device in found["audio_inputs"]["devices"]:
        _print_input(device)
    _print_error(found["audio_inputs"])
    print("\nOpenCL devices (engine.device = 'NAME'); * is the one used")
    for device in found["opencl_devices"]["devices"]:
        print(
            f"{_mark(device)} {device['number']:>3} {device['name']}  {device['kind']}, "
            f"{device['compute_units']} compute units, driver {device['driver']}"
        )
    _print_error(found["opencl_devices"])


def _print_input(device: dict[str, Any]) -> None:
    """Print first the line to copy into the configuration, then the properties."""
    index = "-" if device["index"] < 0 else device["index"]
    print(f"{_mark(device)} {index:>3} {device['uri']}")
    print(
        f"      {device['name']}  [{device['host_api']}] "
        f"{device['channels']} channels, {device['samplerate']:g} Hz"
    )
    if device["in_use"]:
        print(f"      in use: {device['in_use']}")
    if device["rates"]:
        print(
            f"      takes {' '.join(map(str, device['rates']))} Hz, {' '.join(device['formats'])}"
        )
    if device["error"]:
        print(f"      formats unknown: {device['error']}")


def _mark(device: dict[str, Any]) -> str:
    return "*" if device["used"] else " "


def _print_error(part: dict[str, Any]) -> None:
    if part["error"]:
        print(f"  no device is usable: {part['error']}")
