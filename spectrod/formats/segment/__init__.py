"""Segments: spectra in append-only files that survive a crash at any time."""
