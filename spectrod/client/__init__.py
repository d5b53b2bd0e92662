"""The client library: frames from a daemon's endpoint, and the number of frames lost.

There are three ways to receive frames: all of them (``subscribe``); all of them, with lost ones
requested again (``subscribe(..., replay_from=CONTROL)``); and only the newest one on each request
(``latest``). ``spectrod.client.aio`` offers the same for event loops, and ``Control`` sends any
other request to the daemon. Requires only NumPy, pyzmq and msgspec; opens no device.
"""

from spectrod.client import aio
from spectrod.client.conflate import NO_REPLY_S, Latest, latest
from spectrod.client.control import Control
from spectrod.client.subscription import Subscription, subscribe
from spectrod.client.tracker import SILENCE_S
from spectrod.wire.schema import BandFrame, FeaturesFrame, Frame, LevelsFrame, Meta, TonesFrame

__all__ = [
    "NO_REPLY_S",
    "SILENCE_S",
    "BandFrame",
    "Control",
    "FeaturesFrame",
    "Frame",
    "Latest",
    "LevelsFrame",
    "Meta",
    "Subscription",
    "TonesFrame",
    "aio",
    "latest",
    "subscribe",
]
