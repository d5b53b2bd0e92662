"""The routes of history: ``api/history``."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spectrod.errors import BusyError, ConfigError, NotFoundError
from spectrod.web.history.answer import Answer, Topic, answer
from spectrod.web.history.budget import Budget
from spectrod.web.history.cache import Answers, Encoded
from spectrod.web.history.recordings import Recordings
from spectrod.web.history.request import HistoryRequest, parse_request
from spectrod.web.history.ring import Ring

_FOREVER: Final = "private, max-age=31536000, immutable"
_NEVER: Final = "no-store"


def history_routes(
    index: Recordings, ring: Ring, topics: Callable[[], Mapping[int, Topic]]
) -> list[Route]:
    """Return the routes of history.

    Parameters
    ----------
    index : Recordings
        Recordings on the disk.
    ring : Ring
        Live rows of the server.
    topics : callable
        Returns all topics of the server by their numbers, which others do not change.

    Returns
    -------
    routes : list of Route
        To be mounted at the page's address.
    """

    def compute(request: HistoryRequest, budget: Budget) -> Answer:
        return answer(request, topics(), index, ring, budget, now_ns=time.time_ns())

    answers = Answers(compute)

    async def history(request: Request) -> Response:
        try:
            asked = parse_request(request.query_params)
            encoded = await _while_connected(request, answers, asked)
        except ConfigError as error:
            return _refusal(400, error)
        except NotFoundError as error:
            return _refusal(404, error)
        except BusyError as error:
            return _refusal(503, error)
        return _response(request, encoded)

    return [Route("/api/history", history, methods=["GET"])]


def _refusal(status: int, error: Exception) -> Response:
    headers = {"Cache-Control": _NEVER}
    return JSONResponse({"error": str(error)}, status, headers)


def _response(request: Request, encoded: Encoded | None) -> Response:
    if encoded is None:  # the client has gone
        return Response(status_code=499)
    headers = {"ETag": encoded.etag, "Cache-Control": _FOREVER if encoded.is_final else _NEVER}
    if encoded.is_final and request.headers.get("if-none-match") == encoded.etag:
        return Response(status_code=304, headers=headers)
    return Response(encoded.body, media_type="application/octet-stream", headers=headers)


async def _while_connected(
    request: Request, answers: Answers, asked: HistoryRequest
) -> Encoded | None:
    """Wait for an answer; None if the client has gone before."""
    work = asyncio.ensure_future(answers.get(asked))
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        gone.cancel()
        work.cancel()


async def _disconnected(request: Request) -> None:
    """Wait until the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
