"""What daemons are asked for: the topics that a page shows, and for a while those that one did."""

from collections.abc import Iterable, Mapping

from spectrod.apps.web.client import PageClient
from spectrod.apps.web.page_topics import VALUES_PREFIXES, TopicInfo

LINGER_S = 5.0
"""Time for which a topic that no page shows any more is still asked for [s].

A page that is loaded again does not make the daemon stop and start the computation."""


class WantedTopics:
    """The prefixes to subscribe to at one endpoint.

    Parameters
    ----------
    endpoint : str
        The endpoint.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._wanted_s: dict[str, float] = {}

    def update(
        self, clients: Iterable[PageClient], topics: Mapping[int, TopicInfo], now_s: float
    ) -> set[str]:
        """Return the prefixes that are wanted at a monotonic time."""
        for client in clients:
            for prefix in self._of_client(client, topics):
                self._wanted_s[prefix] = now_s
        since_s = now_s - LINGER_S
        self._wanted_s = {name: s for name, s in self._wanted_s.items() if s >= since_s}
        return set(self._wanted_s)

    def _of_client(self, client: PageClient, topics: Mapping[int, TopicInfo]) -> set[str]:
        shown, values = client.topics(), client.value_topics
        prefixes = {
            topic.topic
            for number in shown.union(values or ())
            if (topic := topics.get(number)) is not None and topic.endpoint == self._endpoint
        }
        return prefixes.union(VALUES_PREFIXES) if values is None else prefixes
