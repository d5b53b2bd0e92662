"""Triggers: events in rows of spectra, by level, noise floor, mask or tone. Pure."""
