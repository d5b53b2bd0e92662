"""The check that every engine makes of what it is given; trusted inside."""

from spectrod.errors import InternalError
from spectrod.types import SpectrumSpec
from spectrod.units import Float32Array


def check_frames(spec: SpectrumSpec, samples: Float32Array, n_frames: int, max_frames: int) -> int:
    """Check the input of a power plan.

    Parameters
    ----------
    spec : SpectrumSpec
        Of the plan.
    samples : (channels, n) float32
        C-contiguous, with all the samples of the frames [FS].
    n_frames, max_frames : int
        Frames to compute, and the plan's limit.

    Returns
    -------
    span : int
        Samples of each channel that the frames cover, from the first frame's first on.

    Raises
    ------
    InternalError
        If a rule is broken: callers size their batches by the plan.
    """
    if not 1 <= n_frames <= max_frames:
        raise InternalError(f"n_frames={n_frames}: the plan is for 1 to {max_frames}")
    if samples.ndim != 2 or samples.shape[0] != spec.channels:
        raise InternalError(
            f"samples of shape {samples.shape}: must be (channels={spec.channels}, n)"
        )
    if samples.dtype != "float32" or not samples.flags.c_contiguous:
        raise InternalError(f"samples of {samples.dtype}: must be C-contiguous float32")
    span = frames_span(spec, n_frames)
    if samples.shape[1] < span:
        raise InternalError(f"{samples.shape[1]} samples a channel: {n_frames} frames need {span}")
    return span


def frames_span(spec: SpectrumSpec, n_frames: int) -> int:
    """Count the samples of a channel from the first frame's first to the last frame's last."""
    return (n_frames - 1) * spec.hop + spec.win_length
