"""Events as annotations of SigMF, in a file of metadata alone.

References
----------
.. [1] The Signal Metadata Format Specification, version 1.2.0, sigmf.org.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.attributes import iso_time
from spectrod.formats.sound.sigmf_writer import VERSION
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable
from spectrod.measure.triggers.detection import Detection

_LABEL_MAX: Final = 20
"""Longest label that programs are asked to show [characters]."""


def sigmf_text(events: Sequence[Detection]) -> str:
    """Return the metadata that annotates events.

    Samples count through all files, one after the other without the gaps between them. A capture
    begins with each file that has events, with its UTC if that is known.

    Parameters
    ----------
    events : sequence of Detection
        In any order.

    Raises
    ------
    ConfigError
        If their sample rates differ.
    """
    rates = sorted({one.fs for one in events})
    if len(rates) > 1:
        raise ConfigError(
            f"sample rates {', '.join(f'{fs:g}' for fs in rates)}: SigMF has one: take CSV or JSON"
        )
    of_all: dict[str, Any] = {
        "core:version": VERSION,
        "core:datatype": "rf32_le",
        "core:metadata_only": True,
        "core:recorder": "spectrod",
    }
    if rates:
        of_all["core:sample_rate"] = rates[0]
    ordered = sorted(events, key=lambda one: (one.joined_s, one.channel))
    captures = {one.file: _capture(one) for one in reversed(ordered)}
    content = {
        "global": of_all,
        "captures": sorted(captures.values(), key=lambda one: one["core:sample_start"]),
        "annotations": [_annotation(one) for one in ordered],
    }
    return json.dumps(content, indent=1) + "\n"


def _capture(one: Detection) -> dict[str, Any]:
    start: dict[str, Any] = {"core:sample_start": round((one.joined_s - one.begin_s) * one.fs)}
    if one.has_utc:
        begin_ns = one.event.begin_utc_ns - round(one.begin_s * NS_PER_S)
        start["core:datetime"] = iso_time(begin_ns)
    return start


def _annotation(one: Detection) -> dict[str, Any]:
    event = one.event
    pulses = "" if event.pulses is None else f", {event.pulses} pulses"
    name = printable(Path(one.file).name)
    return {
        "core:sample_start": round(one.joined_s * one.fs),
        "core:sample_count": one.n_samples,
        "core:freq_lower_edge": event.f_min_hz,
        "core:freq_upper_edge": event.f_max_hz,
        "core:label": printable(event.name, _LABEL_MAX),
        "core:comment": f"{event.level:.1f} {event.unit}{pulses}, channel {one.channel}, {name}",
    }
