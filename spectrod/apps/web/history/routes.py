"""The routes of history: ``api/history``, ``api/export`` and ``api/stored``."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spectrod.apps.web.compressed import accepts_gzip, decompressed
from spectrod.apps.web.history.answer import HistoryAnswer, answer
from spectrod.apps.web.history.answer_cache import Answers, Encoded
from spectrod.apps.web.history.budget import Budget
from spectrod.apps.web.history.export import to_csv, to_png, to_segment
from spectrod.apps.web.history.lookup import Topic
from spectrod.apps.web.history.recording_index import StoredRecordings
from spectrod.apps.web.history.request import (
    HistoryRequest,
    parse_levels,
    parse_request,
    parse_topic,
)
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.history.stored_spans import StoredSpans
from spectrod.apps.web.page_origin import network_of
from spectrod.apps.web.sending import LongResponse, Sending
from spectrod.lib.errors import BusyError, ConfigError, NotFoundError, StorageError

_FOREVER: Final = "private, max-age=31536000, immutable"
_NEVER: Final = "no-store"
_UNCACHED: Final = {"Cache-Control": _NEVER}
_MEDIA_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "png": "image/png",
    "spd": "application/octet-stream",
}
EXPORTS_MAX: Final = 2
"""Files that are made at once."""
DECOMPRESSING_MAX: Final = 2
"""Answers that are decompressed at once, for clients that accept no gzip."""

_log = logging.getLogger(__name__)


async def _is_settled(_topic_id: int) -> None:
    """Return at once: no rows are on their way."""


def history_routes(
    recordings: StoredRecordings,
    ring: Ring,
    topics: Callable[[], Mapping[int, Topic]],
    settled: Callable[[int], Awaitable[None]] = _is_settled,
) -> list[Route]:
    """Return the routes of history.

    Parameters
    ----------
    recordings : StoredRecordings
        Recordings on the disk.
    ring : Ring
        Live rows of the server.
    topics : callable
        Returns all topics of the server by their numbers, which others do not change.
    settled : callable, optional
        Waits until older rows of a topic have come that are on their way.

    Returns
    -------
    routes : list of Route
        To be mounted at the page's address.
    """

    def compute(request: HistoryRequest, budget: Budget) -> HistoryAnswer:
        return answer(request, topics(), recordings, ring, budget, now_ns=time.time_ns())

    answers, sending = Answers(compute), Sending()
    decompressing = asyncio.Semaphore(DECOMPRESSING_MAX)

    async def history(request: Request) -> Response:
        asked = parse_request(request.query_params)
        await settled(asked.topic)
        encoded = await _while_connected(request, answers, asked)
        return await _response(request, encoded, sending, decompressing)

    def make_file(request: HistoryRequest, query: Mapping[str, str], budget: Budget) -> bytes:
        budget.start()
        if query["format"] == "spd":
            return to_segment(request, topics(), recordings, budget)
        found = compute(request, budget)
        if query["format"] == "csv":
            return to_csv(found)
        low_db, high_db = parse_levels(query)
        return to_png(found, low_db, high_db, query.get("colormap", "viridis"))

    exporting = asyncio.Semaphore(EXPORTS_MAX)

    async def export(request: Request) -> Response:
        query, budget = request.query_params, Budget()
        asked, media_type = parse_request(query), _media_type(query)
        await settled(asked.topic)
        if exporting.locked():
            raise BusyError(f"{EXPORTS_MAX} files are being made: try again later")
        async with exporting:
            body = await asyncio.to_thread(make_file, asked, query, budget)
        name = f"spectrod-{asked.topic}-{round(asked.t0_ms)}.{query['format']}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return LongResponse(body, sending, headers | _UNCACHED, media_type)

    def route(path: str, handler: Callable[[Request], Coroutine[Any, Any, Response]]) -> Route:
        async def answered(request: Request) -> Response:
            return await _or_refusal(handler(request))

        return Route(path, answered, methods=["GET"])

    return [
        route("/api/history", history),
        route("/api/export", export),
        route("/api/stored", _stored(recordings, ring, topics)),
    ]


def _stored(
    recordings: StoredRecordings, ring: Ring, topics: Callable[[], Mapping[int, Topic]]
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """Return what answers which times are stored of a topic, one request after the other."""
    spans, finding = StoredSpans(recordings, ring), asyncio.Lock()

    async def stored(request: Request) -> Response:
        asked = parse_topic(request.query_params)
        async with finding:
            found = await asyncio.to_thread(spans.find, asked, topics(), time.time_ns())
        return JSONResponse(found.fields(), headers=_UNCACHED)

    return stored


async def _or_refusal(work: Coroutine[Any, Any, Response]) -> Response:
    """Return a response, or that to the error that ended it."""
    try:
        return await work
    except ConfigError as error:
        return _refusal(400, error)
    except NotFoundError as error:
        return _refusal(404, error)
    except BusyError as error:
        return _refusal(503, error)
    except StorageError as error:
        _log.warning("%s", error)
        return _refusal(500, StorageError("a file cannot be read or written"))


def _media_type(query: Mapping[str, str]) -> str:
    """Return the media type of the wanted format; raises ConfigError."""
    wanted = query.get("format", "")
    if wanted not in _MEDIA_TYPES:
        raise ConfigError(f"format={wanted[:40]!a}: must be one of {', '.join(_MEDIA_TYPES)}")
    return _MEDIA_TYPES[wanted]


def _refusal(status: int, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status, _UNCACHED)


async def _response(
    request: Request, encoded: Encoded | None, sending: Sending, decompressing: asyncio.Semaphore
) -> Response:
    if encoded is None:  # the client has gone
        return Response(status_code=499)
    # Weak: the tag is of the content, in whichever coding it is sent.
    tag = f"W/{encoded.etag}"
    lasts = _FOREVER if encoded.is_final else _NEVER
    headers = {"ETag": tag, "Cache-Control": lasts, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if accepts_gzip(request):
        body, headers = encoded.body, headers | {"Content-Encoding": "gzip"}
    else:
        async with decompressing:
            body = await asyncio.to_thread(decompressed, encoded.body)
    return LongResponse(body, sending, headers, "application/octet-stream")


async def _while_connected(
    request: Request, answers: Answers, asked: HistoryRequest
) -> Encoded | None:
    """Wait for an answer; None if the client has gone before."""
    work = asyncio.ensure_future(answers.get(asked, _asker(request)))
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        gone.cancel()
        work.cancel()


def _asker(request: Request) -> str:
    return network_of(request.client.host) if request.client else ""


async def _disconnected(request: Request) -> None:
    """Wait until the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
