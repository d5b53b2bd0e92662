"""Conversion of recordings of spectra."""
