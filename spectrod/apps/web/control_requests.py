"""``POST api/control``: passes requests of the page to the control sockets of daemons."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.responses import Response

from spectrod.client.connection import KeyFile
from spectrod.client.control import Control
from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    DeniedError,
    NotFoundError,
    SpectrodError,
    StorageError,
    UnavailableError,
    WireError,
)
from spectrod.lib.suggestions import did_you_mean
from spectrod.lib.text import printable, reason_of

METHODS: Final = frozenset(
    {
        "status",
        "get",
        "events",
        "set",
        "pause",
        "resume",
        "reset",
        "record.start",
        "record.stop",
        "record.trigger",
        "learn.list",
        "learn.start",
        "learn.abort",
    }
)
"""Methods that a page may call: none that opens files or devices, or ends or reloads anything."""
REPLY_S = 10.0
"""Time for a reply [s]."""
CHANGE_S = 45.0
"""Time for the reply to `set`, which may compile kernels [s]; below the deadline of an answer."""
_STATUS: Final[Mapping[type[SpectrodError], int]] = {
    ConfigError: 400,
    DeniedError: 403,
    NotFoundError: 404,
    BusyError: 409,
    WireError: 502,
    UnavailableError: 503,
    StorageError: 507,
}


class _Call(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a request."""

    method: str
    params: dict[str, Any] = {}
    endpoint: str | None = None
    """Where the daemon publishes; None for the first."""


_decoder = msgspec.json.Decoder(_Call)


class ControlRelay:
    """Passes calls on, one at a time to each daemon.

    Parameters
    ----------
    endpoints : sequence of str
        Where the daemons publish, or their control endpoints.
    server_key, key_file : str, path or None
        As of ``Control``.

    Raises
    ------
    ConfigError
        If an endpoint is invalid, or a key cannot be read.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        server_key: KeyFile | None = None,
        key_file: KeyFile | None = None,
    ) -> None:
        self._controls = {
            endpoint: Control(endpoint, server_key=server_key, key_file=key_file)
            for endpoint in endpoints
        }
        self._turns = {endpoint: asyncio.Lock() for endpoint in endpoints}

    async def answer(self, body: bytes) -> Response:
        """Answer the body of a request: 200 with the result, else the error."""
        try:
            return _json(200, await self._call(body))
        except SpectrodError as error:
            status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
            return _json(status, {"error": printable(str(error))})

    def close(self) -> None:
        """End the connections; idempotent."""
        for control in self._controls.values():
            control.close()

    async def _call(self, body: bytes) -> Any:
        call = _decode(body)
        endpoint = next(iter(self._controls)) if call.endpoint is None else call.endpoint
        control = self._controls.get(endpoint)
        if control is None:
            raise NotFoundError(f"endpoint={endpoint!r}: is none of this server's")
        turn = self._turns[endpoint]
        try:
            await asyncio.wait_for(turn.acquire(), REPLY_S)
        except TimeoutError as error:
            raise BusyError(f"{endpoint}: other requests are being answered; try again") from error
        control.timeout_s = CHANGE_S if call.method == "set" else REPLY_S
        try:
            return await control.call_async(call.method, **call.params)
        finally:
            turn.release()


def _decode(body: bytes) -> _Call:
    try:
        call = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"request: {reason_of(error)}") from error
    if call.method not in METHODS:
        hint = did_you_mean(call.method, METHODS)
        raise ConfigError(f"method={call.method!r}: is none that a page may call{hint}")
    if "timeout_s" in call.params:  # how long a call occupies its daemon's turn is not the page's
        raise ConfigError(f"{call.method}: timeout_s: no such parameter")
    return call


def _json(status: int, content: Any) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")
