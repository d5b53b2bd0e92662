"""Frequency weightings."""
