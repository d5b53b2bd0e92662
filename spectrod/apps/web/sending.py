"""Long answers: sent in pieces as they are read, and bounded together."""

import asyncio
from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

PIECE_BYTES: Final = 1 << 16
"""What is passed to a connection at a time: beyond it waits in the answer, not in a copy of it."""
SENDING_BYTES_MAX: Final = 256 << 20
"""Size of all answers that are being sent [bytes]."""


class Sending:
    """Counts the bytes of answers that are being sent.

    Parameters
    ----------
    bytes_max : int
        Bound [bytes].
    """

    def __init__(self, bytes_max: int = SENDING_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self.n_bytes = 0

    def begin(self, n_bytes: int) -> bool:
        """Count an answer; False if there are too many, so that it must not be sent."""
        if self.n_bytes + n_bytes > self._bytes_max:
            return False
        self.n_bytes += n_bytes
        return True

    def end(self, n_bytes: int) -> None:
        """Release the memory of an answer that ``begin`` has counted."""
        self.n_bytes -= n_bytes


class LongResponse(Response):
    """An answer of which a peer that does not read takes a piece; 503 if too many are unread.

    Parameters
    ----------
    body : bytes
    sending : Sending
        The bound of all.
    headers : dict
    media_type : str
    """

    def __init__(
        self, body: bytes, sending: Sending, headers: dict[str, str], media_type: str
    ) -> None:
        super().__init__(body, headers=headers, media_type=media_type)
        self._sending = sending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        body = bytes(self.body)
        if not self._sending.begin(len(body)):
            why = "too many answers wait to be read: try again later"
            headers = {"Cache-Control": "no-store"}
            await JSONResponse({"error": why}, 503, headers)(scope, receive, send)
            return
        try:
            start = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **start})
            for first in range(0, max(1, len(body)), PIECE_BYTES):
                end = first + PIECE_BYTES
                piece = {"body": body[first:end], "more_body": end < len(body)}
                await send({"type": "http.response.body", **piece})
                await asyncio.sleep(0)  # others have their turn; a peer that has gone is noticed
        finally:
            self._sending.end(len(body))
