"""The routes of recorded sound: ``api/sound`` and ``api/sound/file``, for who has the token."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spectrod.apps.web.gate import Visitor
from spectrod.apps.web.history.request import parse_times, parse_whole
from spectrod.apps.web.sound.recorded_sound import Clip, ClipPlace, RecordedSound
from spectrod.apps.web.sound.sound_answer import SoundAnswer
from spectrod.lib.errors import ConfigError, NotFoundError

FOLDERS_MAX: Final = 1024
"""Numbers of folders that a request may name."""
_UNCACHED: Final = {"Cache-Control": "no-store"}
_NO_TOKEN: Final = "token: needed to hear; open the link that the server printed"  # noqa: S105 - a text


def sound_routes(folders: Sequence[Path]) -> list[Route]:
    """Return the routes, to be mounted at the page's address.

    Parameters
    ----------
    folders : sequence of Path
        Folders with recordings of the daemon.
    """
    sound, finding = RecordedSound(folders), asyncio.Semaphore(1)

    async def listed(request: Request) -> Response:
        query = request.query_params
        begin_ns, end_ns = parse_times(query)
        async with finding:
            found = await asyncio.to_thread(sound.clips, query.get("source", ""), begin_ns, end_ns)
        return JSONResponse({"clips": [_fields(clip) for clip in found]}, headers=_UNCACHED)

    async def file(request: Request) -> Response:
        query, headers = request.query_params, request.headers
        recording, source, name = (query.get(key, "") for key in ("recording", "source", "name"))
        place = ClipPlace(parse_whole(query, "folder", FOLDERS_MAX), recording, source, name)
        descriptor = await asyncio.to_thread(sound.open, place)
        asked = headers.get("range"), headers.get("if-range")
        return SoundAnswer(descriptor, name, place.media_type, asked)

    return [Route("/api/sound", _guarded(listed)), Route("/api/sound/file", _guarded(file))]


def _guarded(
    handler: Callable[[Request], Coroutine[Any, Any, Response]],
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """Answer who has the token, on this machine too: what was said is not for all its users."""

    async def answered(request: Request) -> Response:
        visitor = request.scope["state"]["visitor"]
        if not (isinstance(visitor, Visitor) and visitor.has_token):
            return _refusal(403, _NO_TOKEN)
        try:
            return await handler(request)
        except ConfigError as error:
            return _refusal(400, str(error))
        except NotFoundError as error:
            return _refusal(404, str(error))

    return answered


def _refusal(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status, _UNCACHED)


def _fields(clip: Clip) -> dict[str, Any]:
    place = clip.place
    return {
        "folder": place.folder,
        "recording": place.recording,
        "source": place.source,
        "name": place.name,
        "begin_ms": clip.begin_utc_ns / 1e6,
        "end_ms": clip.end_utc_ns / 1e6,
        "bytes": clip.n_bytes,
    }
