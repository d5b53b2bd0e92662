"""A known delay of responses, removed from a stream."""

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError

DELAY_MAX_SAMPLES = 1 << 20
"""Maximum delay between the channels that is removed [samples]."""


class Alignment:
    """Pairs each sample of a reference with those of its responses that are a delay later.

    Parameters
    ----------
    delay_samples : int
        Delay of the responses, within +-``DELAY_MAX_SAMPLES``; negative if they are early.

    Raises
    ------
    ConfigError
        If the delay is out of range.
    """

    def __init__(self, delay_samples: int) -> None:
        if abs(delay_samples) > DELAY_MAX_SAMPLES:
            raise ConfigError(
                f"delay_samples={delay_samples}: must be within +-{DELAY_MAX_SAMPLES}"
            )
        self._delay_samples = delay_samples
        self._early = slice(0, 1) if delay_samples > 0 else slice(1, None)
        self._late = slice(1, None) if delay_samples > 0 else slice(0, 1)
        self.restart()

    @property
    def n_held(self) -> int:
        """Samples of the earlier channel that wait for those of the later one."""
        return self._held.shape[1]

    def restart(self) -> None:
        """Continue after a gap: the samples that wait are dropped."""
        self._held = np.empty((0, 0))
        self._skip = abs(self._delay_samples)

    def push(self, samples: Float64Array) -> Float64Array:
        """Return the samples that have found their pair.

        Parameters
        ----------
        samples : (1 + responses, n) float64
            Reference and responses, which follow those pushed before [FS].

        Returns
        -------
        aligned : (1 + responses, m) float64
            Their times are those of the earlier channel, of which the first ``n_held`` samples were
            pushed before.
        """
        if not self._delay_samples:
            return samples
        skipped = min(self._skip, samples.shape[1])
        self._skip -= skipped
        early, late = samples[self._early], samples[self._late, skipped:]
        if self.n_held:
            early = np.concatenate([self._held, early], axis=1)
        n = late.shape[1]
        aligned = np.empty((len(samples), n), samples.dtype)
        aligned[self._early], aligned[self._late] = early[:, :n], late
        self._held = early[:, n:].copy()
        return aligned
