"""Spectra to files: pooled columns of power, and the spectrogram picture made of them."""
