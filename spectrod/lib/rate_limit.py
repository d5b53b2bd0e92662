"""Rate limits: token buckets, and a bounded table of buckets by peer. Pure."""

from collections import OrderedDict


class TokenBucket:
    """Token bucket: fills at a constant rate up to a burst.

    Parameters
    ----------
    rate_per_s : float
        Tokens a second, > 0.
    burst : float
        Capacity, >= 1; the bucket starts full.
    now_s : float
        Current time of the clock that all calls use [s].
    """

    def __init__(self, rate_per_s: float, burst: float, now_s: float) -> None:
        self._rate_per_s, self._burst = rate_per_s, burst
        self._tokens, self._filled_s = burst, now_s

    def take(self, now_s: float, tokens: float = 1.0) -> bool:
        """Take tokens if enough are available; return whether they were."""
        self._fill(now_s)
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True

    def spend(self, now_s: float) -> None:
        """Take one token even if none is available: the debt is at most a second's worth."""
        self._fill(now_s)
        self._tokens = max(self._tokens - 1.0, -self._rate_per_s)

    def wait_s(self, now_s: float, tokens: float = 1.0) -> float:
        """Return the time until tokens, at most the burst, are available [s]."""
        self._fill(now_s)
        return max(0.0, (tokens - self._tokens) / self._rate_per_s)

    def _fill(self, now_s: float) -> None:
        gained = (now_s - self._filled_s) * self._rate_per_s
        self._tokens = min(self._burst, self._tokens + gained)
        self._filled_s = now_s


class PeerLimits:
    """Token buckets by peer.

    Keeps the buckets of peers_max peers: the least recently active peer is dropped first, and
    starts with a full bucket if it returns.
    """

    def __init__(self, rate_per_s: float, peers_max: int, burst: float | None = None) -> None:
        # A second's worth may come at once, but at least one request.
        self._burst = max(1.0, rate_per_s) if burst is None else burst
        self._rate_per_s, self._peers_max = rate_per_s, peers_max
        self._buckets: OrderedDict[bytes, TokenBucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, peer: bytes, now_s: float) -> bool:
        """Take a token of a peer; return whether one was available."""
        bucket = self._buckets.pop(peer, None)
        if bucket is None:
            while len(self._buckets) >= self._peers_max:
                self._buckets.popitem(last=False)
            bucket = TokenBucket(self._rate_per_s, self._burst, now_s)
        self._buckets[peer] = bucket
        return bucket.take(now_s)
