"""Fields of made-up messages, for tests of what receives them."""

SPECTRUM = {
    "fs": 48000.0,
    "win_length": 64,
    "nfft": 64,
    "hop": 32,
    "window": "hann",
    "enbw_hz": 1125.0,
    "shape": (33,),
    "unit": "dBFS",
    "ref": "0 dBFS = full-scale sine",
    "engine": "numpy",
}
"""What headers and descriptions of spectra say, beside their number and times."""
