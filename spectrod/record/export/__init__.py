"""Recordings in the formats that other programs read."""
