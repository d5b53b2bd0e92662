"""Smoothing and third-octave bars of the page, compared with the same sums in NumPy."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from spectrod.apps.web.slicing import TopicAxis, slices_of
from spectrod.dsp.weighting import power_factors

ROOT = Path(__file__).parents[4]
FS, NFFT = 48000, 4096
BIN_HZ = FS / NFFT
ENBW_HZ = 1.5 * BIN_HZ
N_BINS = NFFT // 2 + 1
LO, STEP = -327.67, 0.01
TOLERANCE_DB = STEP / 2 + 1e-6
"""Half a step of the page's levels, and rounding."""

RUN = """
import { readFileSync } from "node:fs";
const { smoothed, thirdOctaves } = await import(process.argv[1]);
const { row, n, isWeighted } = JSON.parse(readFileSync(0, "utf8"));
row.values = Uint16Array.from(row.values);
const made = n === null ? thirdOctaves(row, isWeighted) : smoothed(row, n);
const { values, description } = made;
console.log(JSON.stringify({ values: [...values], edges: description.edges_hz }));
"""


def on_the_page(row, n=None, *, is_weighted=False):
    """Return the levels of a row that the page has smoothed or summed, and the bands' edges."""
    module = ROOT / "spectrod" / "apps" / "web" / "page" / "rows" / "spectrumsum.js"
    command = [shutil.which("node"), "--input-type=module", "--eval", RUN, "--", str(module)]
    given = json.dumps({"row": row, "n": n, "isWeighted": is_weighted})
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made = json.loads(done.stdout)
    codes = np.array(made["values"])
    return np.where(codes == 65535, np.nan, LO + STEP * codes), made["edges"]


def rows_of(px, kind, seed):
    """Return a row of random levels as the page gets it, with its power, lower and upper edges."""
    slices = slices_of(TopicAxis(N_BINS, 0.0, BIN_HZ), 0.0, FS / 2, px, kind)
    starts = np.concatenate([s.first + s.per_value * np.arange(s.values) for s in slices])
    widths = np.concatenate([np.full(s.values, s.per_value) for s in slices])
    stops = np.minimum(starts + widths, N_BINS)
    codes = np.random.default_rng(seed).integers(20000, 31000, len(starts))
    codes[len(codes) // 3] = 65535
    fields = {"first_hz": 0.0, "bin_hz": BIN_HZ, "n_bins": N_BINS, "edges_hz": None, "id": 1}
    more = {"bits": 16, "lo": LO, "step": STEP, "enbw_hz": ENBW_HZ, "unit": "dBFS"}
    described = [{"first": s.first, "per_value": s.per_value, "values": s.values} for s in slices]
    row = {"values": codes.tolist(), "description": fields | more | {"slices": described}}
    power = np.where(codes == 65535, np.nan, 10.0 ** ((LO + STEP * codes) / 10.0))
    return row, power, (starts - 0.5) * BIN_HZ, (stops - 0.5) * BIN_HZ


def overlaps(lower, upper, f1, f2):
    """Return how much of each value lies between two frequencies [Hz]."""
    return np.clip(np.minimum(upper, f2) - np.maximum(lower, f1), 0.0, None)


@pytest.mark.parametrize("n", [1, 3, 12, 48])
@pytest.mark.parametrize(("px", "kind"), [(4096, "linear"), (301, "log")])
def test_smoothing_is_the_mean_power_of_a_fraction_of_an_octave(n, px, kind):
    """Of each value: the power of all that is within 1/2n octave, with shares at the edges."""
    row, power, lower, upper = rows_of(px, kind, n)
    found, _ = on_the_page(row, n)
    middle = (lower + upper) / 2
    for j in np.flatnonzero((middle > 0) & ~np.isnan(power)):
        share = overlaps(lower, upper, middle[j] * 2 ** (-0.5 / n), middle[j] * 2 ** (0.5 / n))
        share[np.isnan(power)] = 0.0
        expected = 10 * np.log10(np.nansum(share * np.nan_to_num(power)) / share.sum())
        assert found[j] == pytest.approx(expected, abs=TOLERANCE_DB), (j, middle[j])
    assert np.isnan(found[np.isnan(power)]).all()


@pytest.mark.parametrize("is_weighted", [False, True])
def test_third_octaves_are_sums_of_power_with_the_weighting_of_iec_61672(is_weighted):
    """Band levels are those of the bins' power over the equivalent noise bandwidth."""
    row, power, lower, upper = rows_of(4096, "linear", 5)
    found, (firsts, lasts) = on_the_page(row, is_weighted=is_weighted)
    gain = power_factors("A", (lower + upper) / 2) if is_weighted else 1.0
    middles = np.sqrt(np.array(firsts) * np.array(lasts))
    numbers = 10 * np.log10(middles / 1000)
    np.testing.assert_allclose(numbers, np.round(numbers), atol=1e-9)
    assert len(found) == len(firsts) > 20
    n_holes = 0
    for k, (f1, f2) in enumerate(zip(firsts, lasts, strict=True)):
        share = overlaps(lower, upper, f1, f2)
        if np.isnan(power[share > 0]).any():
            assert np.isnan(found[k]), "a band with a hole has no level"
            n_holes += 1
            continue
        expected = 10 * np.log10(np.sum(share * np.nan_to_num(power) * gain) / ENBW_HZ)
        assert found[k] == pytest.approx(expected, abs=TOLERANCE_DB), middles[k]
    assert n_holes == 1


def test_a_tone_on_a_bin_has_its_level_in_its_band():
    """A Hann window's three bins of a tone of -20 dB sum to -20.0 dB."""
    row, *_ = rows_of(4096, "linear", 1)
    levels = np.full(N_BINS, -250.0)
    levels[[84, 85, 86]] = -20.0 - 6.0206, -20.0, -20.0 - 6.0206
    row["values"] = np.round((levels - LO) / STEP).astype(int).tolist()
    found, (firsts, lasts) = on_the_page(row)
    (k,) = np.flatnonzero((np.array(firsts) < 85 * BIN_HZ) & (np.array(lasts) > 85 * BIN_HZ))
    assert found[k] == pytest.approx(-20.0, abs=0.01)
