"""Spectra for people: the terminal view and one-line status."""
