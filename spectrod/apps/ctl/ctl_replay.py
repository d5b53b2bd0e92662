"""Stored messages for ``spectrod ctl replay``. A module of its own, as messages load NumPy."""

import json
from collections.abc import Iterator

from spectrod.apps.ctl import ctl_text
from spectrod.client.control import Control
from spectrod.client.rpc_codec import messages_of
from spectrod.lib.errors import WireError
from spectrod.lib.text import json_text, printable
from spectrod.wire.schema import BandFrame, Frame, IntervalFrame, decode

_REQUEST_MAX = 1000
"""Most messages of a request."""


def message_lines(
    control: Control, topic: str, first_seq: int, limit: int, *, as_json: bool
) -> Iterator[str]:
    """Yield a line for each stored message, with repeated requests while there are more.

    Parameters
    ----------
    control : Control
        The daemon.
    topic : str
        Of the messages.
    first_seq : int
        Number of the first one.
    limit : int
        Largest number of lines.
    as_json : bool
        Headers as JSON instead of ``frame_text``.

    Raises
    ------
    WireError
        If a message has no values, or a header that cannot be printed.
    SpectrodError
        See ``Control.call``.
    """
    n_left, more = limit, True
    while more and n_left:
        result, parts = control.call_parts(
            "replay", topic=topic, first_seq=first_seq, limit=min(n_left, _REQUEST_MAX)
        )
        messages, more = messages_of(result, parts)
        for message in messages:
            frame = decode(message)
            if not isinstance(frame, (Frame, BandFrame, IntervalFrame)):
                raise WireError(f"{frame.topic}: must be a message with values")
            yield _header_text(message[1]) if as_json else printable(frame_text(frame))
            first_seq = frame.header.seq + 1
        n_left -= len(messages)


def _header_text(header: bytes) -> str:
    try:
        return json_text(json.loads(header))
    except RecursionError:  # its members that nobody knows may be nested as deeply as msgspec goes
        raise WireError("a header is nested too deeply to be printed") from None


def frame_text(frame: Frame | BandFrame | IntervalFrame) -> str:
    """Format a message as a line: number, time, and its highest value, or all of a measurement."""
    if isinstance(frame, IntervalFrame):
        named = zip(frame.header.quantities, frame.values, frame.header.units, strict=True)
        values = ", ".join(f"{name} {value:.2f} {unit}" for name, value, unit in named)
        return f"{frame.header.seq}  {ctl_text.time_text(frame.header.t_utc_ns)}  {values}"
    header = frame.header
    peak = int(frame.values.argmax())
    where = f"at {frame.f[peak]:.1f} Hz" if isinstance(frame, Frame) else f"in band {peak}"
    largest = f"{frame.values[peak]:.2f} {header.unit} {where}"
    when = ctl_text.time_text(header.t_utc_ns)
    return f"{header.seq}  {when}  {len(frame.values)} values, largest {largest}"
