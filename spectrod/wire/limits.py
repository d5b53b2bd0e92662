"""How often somebody may ask: token buckets, and a bounded memory of who has how many. Pure."""

from collections import OrderedDict


class TokenBucket:
    """Fills at a rate up to a burst; who takes from it waits or goes without.

    Parameters
    ----------
    rate_per_s : float
        Tokens a second, > 0.
    burst : float
        Most that it holds, >= 1; it begins full.
    now_s : float
        The time of whatever clock the calls go by [s].
    """

    def __init__(self, rate_per_s: float, burst: float, now_s: float) -> None:
        self._rate_per_s, self._burst = rate_per_s, burst
        self._tokens, self._filled_s = burst, now_s

    def take(self, now_s: float, tokens: float = 1.0) -> bool:
        """Take as many if there are as many; say whether there were."""
        self._fill(now_s)
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True

    def spend(self, now_s: float) -> None:
        """Take one that cannot be refused: what is not there is owed, at most a second's worth."""
        self._fill(now_s)
        self._tokens = max(self._tokens - 1.0, -self._rate_per_s)

    def wait_s(self, now_s: float) -> float:
        """Say how long it takes until there is one [s]; 0 if there is."""
        self._fill(now_s)
        return max(0.0, (1.0 - self._tokens) / self._rate_per_s)

    def _fill(self, now_s: float) -> None:
        gained = (now_s - self._filled_s) * self._rate_per_s
        self._tokens = min(self._burst, self._tokens + gained)
        self._filled_s = now_s


class PeerLimits:
    """A token bucket for each peer.

    Remembers peers_max peers: the one that was silent longest is forgotten first, and begins with a
    full bucket if it comes again.
    """

    def __init__(self, rate_per_s: float, peers_max: int, burst: float | None = None) -> None:
        # A second's worth may come at once, and one request at least.
        self._burst = max(1.0, rate_per_s) if burst is None else burst
        self._rate_per_s, self._peers_max = rate_per_s, peers_max
        self._buckets: OrderedDict[bytes, TokenBucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, peer: bytes, now_s: float) -> bool:
        """Take a token of a peer's, and say whether there was one."""
        bucket = self._buckets.pop(peer, None)
        if bucket is None:
            while len(self._buckets) >= self._peers_max:
                self._buckets.popitem(last=False)
            bucket = TokenBucket(self._rate_per_s, self._burst, now_s)
        self._buckets[peer] = bucket
        return bucket.take(now_s)
