"""Which topic a request for the past is about, and which recordings it has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.request import HistoryRequest, TopicRequest
from spectrod.apps.web.history.source_folder import Place, Pyramid, StoredFile
from spectrod.lib.errors import NotFoundError
from spectrod.wire.endpoint import parse_remote


class Topic(Protocol):
    """What history needs to know of a topic."""

    @property
    def id(self) -> int:
        """Number in this server."""

    @property
    def topic(self) -> str:
        """The topic itself."""

    @property
    def kind(self) -> str:
        """First word of the topic."""

    @property
    def endpoint(self) -> str:
        """Endpoint of its daemon."""

    @property
    def source(self) -> str:
        """Name of the source."""

    @property
    def channel(self) -> str:
        """Name of the channel."""

    @property
    def product(self) -> str:
        """Name of the product."""

    @property
    def unit(self) -> str:
        """Unit of the values."""


@dataclass(slots=True)
class Found:
    """Recordings of one topic."""

    pyramids: list[Pyramid] = field(default_factory=list)
    files: dict[Place, list[StoredFile]] = field(default_factory=dict)


def find_topic(request: HistoryRequest | TopicRequest, topics: Mapping[int, Topic]) -> Topic:
    """Return the topic of a request; raises NotFoundError, see ``answer``."""
    topic = topics.get(request.topic)
    if topic is None:
        raise NotFoundError(f"topic={request.topic}: this server has no topic of this number")
    name = f"{topic.endpoint} {topic.topic}"
    if request.name and request.name != name:
        raise NotFoundError(f"topic={request.topic}: is {name} now; load the page again")
    return topic


def find_recordings(topic: Topic, topics: Mapping[int, Topic], index: RecordingIndex) -> Found:
    """Find the recordings of a topic, which a daemon of this machine has written.

    A recording does not say which daemon wrote it. So with several daemons, only those on this
    machine have recordings.
    """
    found = Found()
    endpoints = {one.endpoint for one in topics.values()} if index.is_of_daemons else ()
    if len(endpoints) > 1 and not parse_remote(topic.endpoint).is_local:
        return found
    found.pyramids = [
        one
        for one in index.pyramids(topic.source)
        if topic.channel in one.about.signals
        and _is_of(topic, one.spec.product, one.spec.scale.unit)
    ]
    for file in index.files(topic.source):
        about = file.description
        if topic.channel not in about.signals or about.spec.output == "complex":
            continue
        if _is_of(topic, about.spec.product, about.spec.scale.unit):
            found.files.setdefault(file.place, []).append(file)
    return found


def _is_of(topic: Topic, product: str, unit: str) -> bool:
    """Return whether a recording is of the topic's product, in the unit that it has now."""
    return product == topic.product and unit == topic.unit.removeprefix("dB re ")
