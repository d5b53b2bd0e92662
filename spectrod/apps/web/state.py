"""The state of daemons and of their sources, as a text for pages."""

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

from spectrod.apps.web.feed import Feed
from spectrod.lib.text import printable
from spectrod.wire.schema import EventMessage, HeartbeatHeader

_SOURCES_MAX = 256
_CHECKS_MAX = 32
_TEXT_MAX = 300


def state_fields(feeds: Iterable[Feed], n_clients: int) -> dict[str, Any]:
    """Return the fields of a ``state`` text; of each endpoint at most 256 sources."""
    feeds = list(feeds)
    return {
        "endpoints": [_of_endpoint(feed) for feed in feeds],
        "sources": [one for feed in feeds for one in _of_sources(feed)],
        "clients": n_clients,
        "now_ms": now_ms(),
    }


def event_fields(endpoint: str, event: EventMessage) -> dict[str, Any]:
    """Return the fields of an ``event`` text."""
    h = event.header
    fields: dict[str, Any] = {
        "endpoint": endpoint,
        "source": printable(h.source, _TEXT_MAX),
        "t_ms": h.t_utc_ns / 1e6,
        "kind": printable(h.kind, _TEXT_MAX),
        "text": printable(h.text),
        "number": h.number,
    }
    return fields | ({"trigger": h.trigger} if h.trigger else {})


def now_ms() -> float:
    """Return UTC [ms since 1970]."""
    return time.time() * 1e3


def _of_endpoint(feed: Feed) -> dict[str, Any]:
    return {
        "endpoint": feed.endpoint,
        "connected": feed.connected,
        "silence_s": feed.silence_s if math.isfinite(feed.silence_s) else None,
        "missed": feed.missed,
        "broken": feed.broken,
        "why": feed.why,
    }


def _of_sources(feed: Feed) -> list[dict[str, Any]]:
    beats: Mapping[str, HeartbeatHeader] = feed.heartbeats
    names = sorted(beats)[:_SOURCES_MAX]
    return [_of_source(feed, name, beats[name]) for name in names]


def _of_source(feed: Feed, name: str, beat: HeartbeatHeader) -> dict[str, Any]:
    return {
        "endpoint": feed.endpoint,
        "source": name,
        "state": printable(beat.state, _TEXT_MAX),
        "waiting_for": printable(beat.waiting_for, _TEXT_MAX),
        "frames": beat.frames,
        "overflows": beat.overflows,
        "dropped": beat.dropped,
        "suspected": beat.suspected,
        "restarts": beat.restarts,
        "rate_error_ppm": beat.rate_error_ppm,
        "rate_uncertainty_ppm": beat.rate_uncertainty_ppm,
        "checks": [printable(text, _TEXT_MAX) for text in beat.checks[:_CHECKS_MAX]],
        "clipped_samples": beat.clipped_samples,
        "clock_offset_s": feed.clock_offset_s.get(name),
    }
