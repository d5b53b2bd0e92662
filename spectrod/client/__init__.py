"""The client library: frames from a daemon's endpoint, and the number of frames lost.

There are three ways to receive frames: all of them (``subscribe``); all of them, with lost ones
requested again (``subscribe(..., replay_from=CONTROL)``); and only the newest one on each request
(``latest``). ``spectrod.client.aio`` offers the same for event loops, and ``Control`` sends any
other request to the daemon. Requires only NumPy, pyzmq and msgspec; opens no device.

The names load their modules on first use: ``Control`` needs no NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectrod.client import aio
    from spectrod.client.conflate import NO_REPLY_S, Latest, latest
    from spectrod.client.control import Control
    from spectrod.client.subscription import Subscription, subscribe
    from spectrod.client.tracker import SILENCE_S
    from spectrod.wire.schema import (
        BandFrame,
        FeaturesFrame,
        Frame,
        LevelsFrame,
        MessageTable,
        Meta,
        TonesFrame,
        TransferFrame,
    )

__all__ = [
    "NO_REPLY_S",
    "SILENCE_S",
    "BandFrame",
    "Control",
    "FeaturesFrame",
    "Frame",
    "Latest",
    "LevelsFrame",
    "MessageTable",
    "Meta",
    "Subscription",
    "TonesFrame",
    "TransferFrame",
    "aio",
    "latest",
    "subscribe",
]

_HOMES = {
    "NO_REPLY_S": "spectrod.client.conflate",
    "Latest": "spectrod.client.conflate",
    "latest": "spectrod.client.conflate",
    "Control": "spectrod.client.control",
    "Subscription": "spectrod.client.subscription",
    "subscribe": "spectrod.client.subscription",
    "SILENCE_S": "spectrod.client.tracker",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'spectrod.client' has no attribute {name!r}")
    if name == "aio":
        return import_module("spectrod.client.aio")
    home = _HOMES.get(name, "spectrod.wire.schema")
    found = globals()[name] = getattr(import_module(home), name)
    return found


def __dir__() -> list[str]:
    return __all__
