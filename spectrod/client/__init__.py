"""What a subscriber imports: frames from a daemon's endpoint, and what was missed on the way.

Needs NumPy, pyzmq and msgspec only; opens no device.
"""

from spectrod.client.control import Control
from spectrod.client.subscription import SILENCE_S, Subscription, subscribe
from spectrod.wire.schema import Frame

__all__ = ["SILENCE_S", "Control", "Frame", "Subscription", "subscribe"]
