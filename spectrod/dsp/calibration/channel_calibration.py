"""The calibration of one channel."""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from spectrod.dsp.calibration.response import Response
from spectrod.dsp.calibration.validity import ALWAYS, Validity
from spectrod.dsp.level_reference import Reference

FULL_SCALE_DB_MIN, FULL_SCALE_DB_MAX = -200.0, 300.0
"""Bounds on the level of digital full scale [dB re the reference]."""


@dataclass(frozen=True, slots=True)
class ChannelCalibration:
    """What the samples of a channel mean.

    Attributes
    ----------
    reference : Reference
        The quantity of 0 dB.
    full_scale_db : float
        Level of a signal whose root mean square is digital 1.0 [dB re ``reference``]. A full-scale
        sine, 0 dBFS, is 3.01 dB lower.
    response : Response, optional
        Frequency response relative to the stated sensitivity.
    cal_id : str
        Short identity: the serial number, and a digest of all values that results depend on.
    response_hz : (float, float), optional
        Lowest and highest frequency at which the response is known [Hz]; None without a response.
    uncertainty_db : float, optional
        Expanded uncertainty of the sensitivity, k = 2 [dB].
    validity : Validity
        When it holds; always, by default.
    """

    reference: Reference
    full_scale_db: float
    response: Response | None = None
    cal_id: str = ""
    response_hz: tuple[float, float] | None = None
    uncertainty_db: float | None = None
    validity: Validity = ALWAYS

    @property
    def unit(self) -> str:
        """Unit of levels, such as ``dB SPL``."""
        return self.reference.level_unit

    @property
    def linear_unit(self) -> str:
        """Unit of root mean squares, such as ``Pa``."""
        return self.reference.unit

    @property
    def full_scale(self) -> float:
        """Root mean square of digital 1.0 [``linear_unit``]."""
        return float(10.0 ** (self.full_scale_db / 20.0) * self.reference.value)


def full_scale_level_db(
    sensitivity: float, gain_db: float, full_scale_v: float, reference: Reference
) -> float:
    """Return the level of digital 1.0 (rms) of a chain.

    Parameters
    ----------
    sensitivity : float
        Of the transducer, M [V per base unit].
    gain_db : float
        Of the amplifier, g [dB].
    full_scale_v : float
        Peak voltage at the converter that makes digital 1.0, V: half of a data sheet's
        peak-to-peak voltage [V].
    reference : Reference
        p0.

    Returns
    -------
    level : float
        ``20 lg(V / (M g p0))`` [dB re reference].
    """
    ratio = full_scale_v / (sensitivity * reference.base_value)
    return 20.0 * math.log10(ratio) - gain_db


def identity(
    serial: str, reference: Reference, full_scale_db: float, response: Response | None
) -> str:
    """Return the identity of a calibration: serial number and a digest of its values."""
    values = f"{reference.name} {full_scale_db:.6f} {_digest(response)}"
    digest = hashlib.sha256(values.encode()).hexdigest()[:8]
    return f"{serial}-{digest}" if serial else digest


@lru_cache(maxsize=64)
def _digest(response: Response | None) -> str:
    """Return the digest of a response, which many channels may share."""
    return hashlib.sha256(repr(response).encode()).hexdigest()


def common_text(texts: Iterable[str]) -> str:
    """Join texts of channels; one text if all are equal."""
    return ",".join(dict.fromkeys(texts))
