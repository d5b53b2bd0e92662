"""Samples in sound files."""
