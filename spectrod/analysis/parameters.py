"""Keywords of ``spectrogram`` and ``Stft`` that are passed on to ``SpectrumSpec`` as they are."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_type_hints

from spectrod.dsp.spectrum import SPEC_DEFAULTS
from spectrod.lib.errors import ConfigError
from spectrod.lib.signatures import with_arrays_named
from spectrod.lib.suggestions import did_you_mean

_FRAMES = ("window", "win_length", "hop", "nfft")
_OTHER_LIBRARIES = {
    "nperseg": "it is win_length here",
    "noverlap": "hop is win_length - noverlap",
    "hop_length": "it is hop here",
    "n_fft": "it is nfft here, and win_length is that of the window",
    "n_mels": "bands='mel:64' has mel bands",
    "center": "the first frame begins at the first sample, nothing is padded",
    "padding": "nothing is padded",
    "boundary": "nothing is padded",
    "detrend": "nothing is subtracted from frames",
    "power": "scaling and output say what values are",
    "mode": "scaling and output say what values are",
}
"""Keywords of SciPy, librosa and PyTorch, see docs/coming-from.md."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def showing(known: type) -> Callable[[_Function], _Function]:
    """Decorate a function so that its signature names the keys of a TypedDict, not ``**``."""

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        kept = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        named = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=SPEC_DEFAULTS[name],
                annotation=annotation,
            )
            for name, annotation in get_type_hints(known).items()
        ]
        shown = with_arrays_named(signature.replace(parameters=[*kept, *named]))
        function.__signature__ = shown  # type: ignore[attr-defined]  # inspect reads it
        return function

    return decorate


def require_known(function: str, given: Mapping[str, Any], known: type) -> None:
    """Raise TypeError, as Python does, for a keyword that is no key of a TypedDict."""
    for name in given:
        if name not in known.__annotations__:
            other = _OTHER_LIBRARIES.get(name)
            hint = f"; {other}" if other else did_you_mean(name, [*_FRAMES, *known.__annotations__])
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def require_averages(given: Mapping[str, Any]) -> None:
    """Raise ConfigError if frames are averaged, and nothing says how many.

    The default of ``averaging_frames`` is that of spectra without averaging.
    """
    averaging = given.get("averaging", "none")
    says_how_many = "averaging_frames" in given or given.get("rate_hz")
    if averaging not in ("none", "exponential") and not says_how_many:
        raise ConfigError(
            f"averaging={averaging!r}: needs averaging_frames, the frames of a row, or rate_hz, "
            "the rows a second"
        )
