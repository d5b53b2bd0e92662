"""Log lines on a spec: samples and bands that an analysis leaves out."""

from collections.abc import Sequence

from spectrod.dsp.bands import AUDIBLE_MIN_HZ
from spectrod.dsp.constant_q import is_constant_q
from spectrod.dsp.row_grid import hop_that_covers
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import NFFT_MAX

_NAMED_MAX = 12


def rows_leave_out(spec: SpectrumSpec) -> str:
    """Return a log line on the samples of each row outside all frames; see ``uncovered``."""
    whole = int(spec.row_step)
    hop = hop_that_covers(whole, spec.win_length, spec.hop)
    return (
        f"{spec.product}: {spec.uncovered} of the {whole} samples of each row are in no frame; "
        f"hop={hop} leaves out none"
    )


def frames_leave_out(spec: SpectrumSpec) -> str:
    """Return a log line on the samples between frames; empty if there are none."""
    between = spec.hop - spec.win_length
    if between <= 0:
        return ""
    return (
        f"{spec.product}: {between} of each {spec.hop} samples are in no frame: hop={spec.hop} is "
        f"longer than win_length={spec.win_length}"
    )


def samples_left_out(spec: SpectrumSpec, n_left_out: int, n_read: int, gaps: int) -> str:
    """Return a log line on the samples of a source that are in no spectrum.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the spectra.
    n_left_out, n_read : int
        Samples in no spectrum, of all that were read.
    gaps : int
        Gaps between them; a folder has one wherever its recorder slept.
    """
    lost_s = f"{n_left_out / spec.fs:.4g} s"
    if gaps and n_left_out <= (gaps + 1) * spec.win_length:
        share = 100.0 * n_left_out / n_read
        return (
            f"{lost_s} of {n_read / spec.fs:.6g} s ({share:.2g} %) are in no spectrum: at the ends "
            f"of {gaps + 1} stretches without gaps, on average less than a window of "
            f"{spec.win_length} samples; that is normal, and a shorter --hop leaves out less"
        )
    where = ["at the end"]
    where += ["before gaps"] * (gaps > 0)
    where += ["before the first row"] * (spec.align == "utc")
    return (
        f"{n_left_out} samples ({lost_s}) {', '.join(where)} are in no spectrum: they do not fill "
        f"a window of {spec.win_length} (--win-length)"
    )


def bands_blurred(spec: SpectrumSpec) -> str:
    """Return a log line on the audible bands that only zero-padding seems to resolve, or "".

    Bins are fs / nfft apart, but the window cannot resolve less than fs / win_length.
    """
    bands, resolution_hz = spec.band_table, spec.fs / spec.win_length
    if bands is None or not bands.names or spec.nfft <= spec.win_length:
        return ""
    narrow = (bands.width < resolution_hz) & (bands.upper > AUDIBLE_MIN_HZ)
    if not narrow.any():
        return ""
    names = tuple(name for name, is_narrow in zip(bands.names, narrow, strict=True) if is_narrow)
    return (
        f"bands={spec.bands!r}: narrower than the window's resolution, {resolution_hz:.4g} Hz; "
        f"they mix with their neighbours: {_enumerated(names)}"
    )


def _enumerated(names: Sequence[str]) -> str:
    """Join names with commas; shorten a long list to the first ones and the last."""
    if len(names) > _NAMED_MAX:
        names = (*names[: _NAMED_MAX - 1], f"... {names[-1]} ({len(names)} bands)")
    return ", ".join(names)


def bands_left_out(spec: SpectrumSpec) -> str:
    """Return a log line on the low bands that the window does not resolve; empty without any."""
    bands = spec.band_table
    if bands is None or not bands.unresolved:
        return ""
    needed = spec.resolving_win_length
    cure = f"win_length={needed} or more resolves them"
    if needed > NFFT_MAX:
        cure = f"no win_length up to {NFFT_MAX} resolves them"
    why = f"narrower than a bin of {spec.delta_f:.4g} Hz"
    if is_constant_q(spec.bands):
        why = f"filters longer than win_length={spec.win_length}"
    return f"bands={spec.bands!r}: left out, as {why}: {_enumerated(bands.unresolved)}; {cure}"
