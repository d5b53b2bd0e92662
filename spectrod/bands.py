"""Bands over bins."""
