"""Meters of frames: named values of intervals, and tracks of tones, of samples as they come."""
