"""The route of the events of what is stored: ``api/events``."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spectrod.apps.web.archive.stored_events import StoredEvents
from spectrod.apps.web.compressed import accepts_gzip, decompressed
from spectrod.apps.web.sending import LongResponse, Sending


def events_route(events: StoredEvents) -> Route:
    """Return the route, to be mounted at the page's address."""
    sending, making = Sending(), asyncio.Semaphore(1)

    async def answer(request: Request) -> Response:
        headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
        listed = events.listed
        async with making:
            body = await asyncio.to_thread(lambda: listed.body)
            if accepts_gzip(request):
                headers["Content-Encoding"] = "gzip"
            else:
                body = await asyncio.to_thread(decompressed, body)
        return LongResponse(body, sending, headers, "application/json")

    return Route("/api/events", answer, methods=["GET"])
