"""Bands: their edges and centres, and each bin's share in them."""

import numpy as np
import pytest

from spectrod.dsp.bands import bark_to_hz, erb_rate_to_hz, get_bands, hz_to_bark, hz_to_erb_rate
from spectrod.lib.errors import ConfigError

FS, NFFT = 48000.0, 8192


def matrix(bands, nfft):
    """Return the shares as a dense (bands, bins) matrix."""
    dense = np.zeros((len(bands), nfft // 2 + 1))
    rows = np.split(bands.shares, np.cumsum(bands.count)[:-1])
    for row, first, shares in zip(dense, bands.first, rows, strict=True):
        row[first : first + len(shares)] = shares
    return dense


def test_octaves_are_the_standards():
    """Octave centres are powers of 10^0.3 times 1 kHz, with edges half a band away."""
    bands = get_bands("octave", FS, NFFT)
    np.testing.assert_allclose(bands.centre, 1000.0 * 10.0 ** (0.3 * np.arange(-6, 5)))
    np.testing.assert_allclose(bands.upper / bands.lower, 10.0**0.3)
    np.testing.assert_allclose(bands.lower * bands.upper, bands.centre**2)


def test_third_octaves_are_decades_in_ten():
    """Three third-octaves make an octave, ten make a decade, and one is centred at 1 kHz."""
    centres = get_bands("third-octave", FS, NFFT).centre
    exact = 10.0 ** (np.round(10.0 * np.log10(centres)) / 10.0)
    np.testing.assert_allclose(centres, exact, rtol=1e-12)
    assert np.isclose(centres, 1000.0).sum() == 1
    assert centres[-1] == pytest.approx(19952.6, abs=0.1)


@pytest.mark.parametrize(("fraction", "offset"), [(1, 0.0), (2, 0.5), (3, 0.0), (12, 0.5)])
def test_even_fractions_are_half_a_band_off(fraction, offset):
    """An even number of bands per octave has an edge at 1 kHz, an odd number a centre."""
    centres = get_bands(f"octave/{fraction}", FS, NFFT).centre
    steps = fraction * np.log10(centres / 1000.0) / 0.3
    np.testing.assert_allclose(steps - offset, np.round(steps - offset), atol=1e-9)


@pytest.mark.parametrize("nfft", [8192, 8191, 1000, 16384])
@pytest.mark.parametrize(
    "name", ["octave", "third-octave", "octave/24", "bark", "erb", "millidecade"]
)
def test_neighbours_share_a_bin_at_their_edge(name, nfft):
    """Every bin between the first and the last edge is shared out to bands completely and once."""
    fs = 48000.0 if name != "millidecade" else min(nfft, 48000.0)
    bands = get_bands(name, fs, nfft)
    np.testing.assert_allclose(bands.lower[1:], bands.upper[:-1])
    total = matrix(bands, nfft).sum(axis=0)
    frequencies = np.arange(nfft // 2 + 1) * fs / nfft
    half = fs / nfft / 2.0
    inside = (frequencies - half >= bands.lower[0]) & (frequencies + half <= bands.upper[-1])
    np.testing.assert_allclose(total[inside], 1.0, atol=1e-9)
    assert total.max() <= 1.0 + 1e-9
    assert not total[frequencies + half < bands.lower[0]].any()
    assert not total[frequencies - half > bands.upper[-1]].any()
    assert (bands.count >= 1).all()
    assert bands.shares.min() > 0.0


def test_flat_density_gives_the_width():
    """A flat density sums to the width of each band, also where the half bins at the ends count."""
    for name, nfft in (
        ("third-octave", NFFT),
        ("octave/3", 8191),
        ("erb", 9999),
        ("millidecade", 48000),
    ):
        bands = get_bands(name, FS, nfft)
        extents = np.full(nfft // 2 + 1, FS / nfft)
        extents[0] /= 2.0
        if nfft % 2 == 0:
            extents[-1] /= 2.0
        np.testing.assert_allclose(matrix(bands, nfft) @ extents, bands.width, rtol=1e-9)


def test_bands_above_nyquist_or_below_a_bin_are_left_out():
    """Bands that reach above Nyquist or are narrower than a bin are left out."""
    bands = get_bands("octave", 44100.0, 1024)
    assert bands.upper[-1] <= 22050.0 < bands.upper[-1] * 10.0**0.3
    assert bands.width[0] >= 44100.0 / 1024 > bands.width[0] / 10.0**0.3


def test_millidecades_start_with_single_hertz():
    """Millidecades start with 1 Hz bands to 434 Hz, then 1000 bands per decade, without a gap.

    Source: Martin et al. 2021.
    """
    bands = get_bands("millidecade", FS, 48000)
    np.testing.assert_array_equal(bands.centre[:435], np.arange(435))
    # PyPAM 1.0's table for 48 kHz.
    np.testing.assert_allclose(bands.centre[435:438], [435.01076, 436.01356, 437.01867], atol=1e-5)
    np.testing.assert_allclose(bands.upper[434:436], [434.51022, 435.51187], atol=1e-5)
    np.testing.assert_allclose(bands.width[1:434], 1.0)
    assert (bands.lower[0], bands.upper[0], bands.lower[434]) == (0.0, 0.5, 433.5)
    np.testing.assert_array_equal(bands.lower[1:], bands.upper[:-1])
    np.testing.assert_array_equal(bands.first[:435], np.arange(435))
    np.testing.assert_array_equal(bands.count[:434], 1)
    np.testing.assert_allclose(bands.centre[-1] / bands.centre[-1001], 10.0)


@pytest.mark.parametrize("fs", [16.0, 868.0, 870.0, 48000.0, 44101.0])
def test_millidecades_reach_as_far_as_they_fit(fs):
    """The last millidecade ends at or below fs/2, and no other band would fit above it."""
    bands = get_bands("millidecade", fs, 1 << 16)
    assert bands.upper[-1] <= fs / 2 < bands.upper[-1] + 1.1 * max(1.0, bands.width[-1])


def test_mel_centres_are_slaneys():
    """Mel centres are linear to 1 kHz, then in steps of ln(6.4)/27, as Slaney's 40 filters are."""
    centres = get_bands("mel:38", 22050.0, 2048).centre
    np.testing.assert_allclose(centres[:3], [85.317, 170.635, 255.952], atol=1e-3)
    np.testing.assert_allclose(centres[10:13], [938.490, 1024.856, 1119.114], atol=1e-3)
    np.testing.assert_allclose(centres[-1], 10096.408, atol=1e-3)


def test_mel_bands_are_triangles():
    """A mel band is 1 at its centre, 0 at the neighbours' centres, and its area is its width."""
    nfft = 1 << 16
    bands = get_bands("mel:24", FS, nfft)
    frequencies = np.arange(nfft // 2 + 1) * FS / nfft
    for row, lower, centre, upper in zip(
        matrix(bands, nfft), bands.lower, bands.centre, bands.upper, strict=True
    ):
        triangle = np.interp(frequencies, [lower, centre, upper], [0.0, 1.0, 0.0])
        np.testing.assert_allclose(row, triangle, atol=1e-12)
    areas = matrix(bands, nfft).sum(axis=1) * FS / nfft
    np.testing.assert_allclose(areas, bands.width, rtol=1e-4)


def test_bands_are_shared_and_read_only():
    """Band tables are shared between callers and read-only."""
    bands = get_bands("octave", FS, NFFT)
    assert get_bands("octave", FS, NFFT) is bands
    with pytest.raises(ValueError, match="read-only"):
        bands.shares[0] = 2.0


@pytest.mark.parametrize(
    ("name", "nfft", "message"),
    [
        (
            "barks",
            4096,
            "mel:N, bark, erb, millidecade, cqt:B, vqt:B or reassigned",
        ),
        ("octave/0", 4096, "bands='octave/0': '0' must be a whole number, 1 to 96"),
        ("octave/3.5", 4096, r"bands='octave/3.5': '3.5' must be a whole number, 1 to 96"),
        ("mel:", 4096, "bands='mel:': '' must be a whole number, 1 to 1024"),
        ("mel:2000", 4096, "bands='mel:2000': '2000' must be a whole number, 1 to 1024"),
        ("mel:128", 256, r"bands='mel:128': band 0, 0 to \S+ Hz, has no bin: must be fewer bands"),
        ("bark", 8, "bands='bark': none lies below fs/2=24000 Hz and is as wide as a bin, 6000"),
        ("octave/96", 16, "bands='octave/96': none lies below fs/2=24000 Hz and is as wide as a"),
        ("millidecade", 32768, "bins are 1.46484 Hz wide, must be 1 Hz or less: nfft=32768 must"),
    ],
)
def test_rules(name, nfft, message):
    """An error about bands names the value and the rule."""
    with pytest.raises(ConfigError, match=message):
        get_bands(name, FS, nfft)


def test_octaves_and_thirds_have_nominal_names():
    """Octaves and thirds have the nominal names of IEC 61260-1 and ISO 266 in any decade."""
    octaves = get_bands("octave", FS, 65536)
    named = "2 Hz,4 Hz,8 Hz,16 Hz,31.5 Hz,63 Hz,125 Hz,250 Hz,500 Hz,1 kHz,2 kHz,4 kHz,8 kHz,16 kHz"
    assert octaves.names == tuple(named.split(","))
    thirds = get_bands("third-octave", 10_000_000.0, 1 << 16)
    low = "800 Hz,1 kHz,1.25 kHz,1.6 kHz,2 kHz,2.5 kHz,3.15 kHz,4 kHz,5 kHz,6.3 kHz,8 kHz,10 kHz"
    assert thirds.names[: len(low.split(","))] == tuple(low.split(","))
    assert thirds.names[-4:] == ("2 MHz", "2.5 MHz", "3.15 MHz", "4 MHz")
    for bands in (octaves, thirds):
        assert len(set(bands.names)) == len(bands.names) == len(bands)
        units = {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6}
        values = [float(text.split()[0]) * units[text.split()[1]] for text in bands.names]
        np.testing.assert_allclose(values, bands.centre, rtol=0.012)


def test_other_bands_have_exact_names_or_none():
    """Other fractions are named by six digits of the frequency; mel and millidecades are not."""
    bands = get_bands("octave/12", FS, NFFT)
    assert "1.0292 kHz" in bands.names
    assert "971.628 Hz" in bands.names
    assert len(set(get_bands("octave/96", FS, 1 << 20).names)) == len(
        get_bands("octave/96", FS, 1 << 20)
    )
    assert get_bands("mel:20", FS, NFFT).names == ()
    assert get_bands("millidecade", FS, 48000).names == ()


@pytest.mark.parametrize("name", ["octave", "third-octave", "octave/2", "octave/24"])
@pytest.mark.parametrize(("fs", "nfft"), [(48000.0, 1024), (44100.0, 1001), (96000.0, 4096)])
def test_bands_that_are_not_resolved_are_named(name, fs, nfft):
    """The report lists the missing bands from 20 Hz and the bin width that resolves all."""
    bands = get_bands(name, fs, nfft)
    assert bands.unresolved
    needed = int(np.ceil(fs / bands.resolving_hz))
    whole = get_bands(name, fs, needed)
    assert whole.unresolved == ()
    assert whole.resolving_hz == 0.0
    assert (*bands.unresolved, *bands.names) == whole.names[
        whole.names.index(bands.unresolved[0]) :
    ]
    assert whole.centre[whole.names.index(bands.unresolved[0])] > 18.0
    assert bands.unresolved[0] in get_bands(name, fs, needed - 1).unresolved


def test_thirds_from_20_hz_are_missed():
    """A window of 4096 samples at 48 kHz misses low thirds, and octaves from 31.5 Hz."""
    thirds = get_bands("third-octave", FS, 4096)
    assert thirds.unresolved == ("20 Hz", "25 Hz", "31.5 Hz", "40 Hz", "50 Hz")
    assert thirds.names[0] == "63 Hz"
    assert get_bands("octave", FS, 1024).unresolved == ("31.5 Hz", "63 Hz")
    assert get_bands("octave", FS, 4096).unresolved == ()
    assert get_bands("mel:20", FS, NFFT).unresolved == ()


def test_critical_bands_are_zwickers():
    """The 24 critical bands are contiguous from 0 Hz to 15.5 kHz and as wide as Zwicker's."""
    bands = get_bands("bark", FS, NFFT)
    widths = [100] * 4 + [110, 120, 140, 150, 160, 190, 210, 240, 280, 320, 380, 450, 550, 700]
    assert bands.width.tolist() == [*widths, 900, 1100, 1300, 1800, 2500, 3500]
    assert (bands.lower[0], bands.upper[-1]) == (0.0, 15500.0)
    np.testing.assert_array_equal(bands.lower[1:], bands.upper[:-1])
    assert ((bands.lower < bands.centre) & (bands.centre < bands.upper)).all()
    assert (bands.names[0], bands.names[8], bands.centre[8]) == ("Bark 1", "Bark 9", 1000.0)
    assert get_bands("bark", 8000.0, 1024).names[-1] == "Bark 17"  # 18 ends at 4.4 kHz


def test_erb_bands_are_1_wide_on_the_erb_rate_scale():
    """ERB band n reaches from n - 1 to n on the ERB-rate scale, and is as wide as the ERB there."""
    bands = get_bands("erb", FS, NFFT)
    numbers = np.arange(len(bands)) + 1.0
    np.testing.assert_allclose(hz_to_erb_rate(bands.upper), numbers, rtol=1e-12)
    np.testing.assert_allclose(hz_to_erb_rate(bands.lower), numbers - 1.0, atol=1e-12)
    # ERB = 24.7 Hz (4.37 f / kHz + 1), of the same paper; 21.4 is rounded there.
    np.testing.assert_allclose(bands.width, 24.7 * (0.00437 * bands.centre + 1.0), rtol=0.005)
    assert bands.names[:2] == ("ERB 1", "ERB 2")
    assert hz_to_erb_rate(bands.upper[-1]) <= hz_to_erb_rate(24000.0) < numbers[-1] + 1.0


def test_ear_scales_have_their_published_values():
    """1 kHz is at 15.62 on the ERB-rate scale and at 8.53 Bark; both scales are invertible."""
    assert hz_to_erb_rate(1000.0) == pytest.approx(15.62, abs=0.005)
    assert hz_to_bark(1000.0) == pytest.approx(8.53, abs=0.005)
    hz = np.array([0.0, 20.0, 440.0, 20000.0, 96000.0])
    np.testing.assert_allclose(erb_rate_to_hz(hz_to_erb_rate(hz)), hz, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(bark_to_hz(hz_to_bark(hz)), hz, rtol=1e-12, atol=1e-9)
    edges = get_bands("bark", FS, NFFT).upper[1:20]  # 200 Hz to 6.4 kHz
    np.testing.assert_allclose(hz_to_bark(edges), np.arange(2, 21), atol=0.05)


@pytest.mark.parametrize(("name", "first"), [("bark", "Bark 1"), ("erb", "ERB 1")])
def test_ear_bands_narrower_than_a_bin_are_named(name, first):
    """Critical and ERB bands narrower than a bin are left out and named."""
    bands = get_bands(name, FS, 256)
    assert bands.unresolved[0] == first
    whole = get_bands(name, FS, int(np.ceil(FS / bands.resolving_hz)))
    assert (*bands.unresolved, *bands.names) == whole.names
    assert whole.unresolved == ()
