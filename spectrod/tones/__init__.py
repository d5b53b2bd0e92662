"""Tones in power spectra: peaks, tracks, distortion, occupied bandwidth and channel power."""
