"""What a subscriber imports: frames from a daemon's endpoint, and what was missed on the way.

Three ways to have them: complete, as they come (``subscribe``); complete, with what was missed had
again (``subscribe(..., replay_from=CONTROL)``); and the newest whenever there is time for one
(``latest``). ``spectrod.client.aio`` has the same for event loops, ``Control`` asks the daemon for
anything else. Needs NumPy, pyzmq and msgspec only; opens no device.
"""

from spectrod.client import aio
from spectrod.client.control import Control
from spectrod.client.newest import NO_REPLY_S, Latest, latest
from spectrod.client.subscription import Subscription, subscribe
from spectrod.client.tracker import SILENCE_S
from spectrod.wire.schema import BandFrame, Frame, Meta

__all__ = [
    "NO_REPLY_S",
    "SILENCE_S",
    "BandFrame",
    "Control",
    "Frame",
    "Latest",
    "Meta",
    "Subscription",
    "aio",
    "latest",
    "subscribe",
]
