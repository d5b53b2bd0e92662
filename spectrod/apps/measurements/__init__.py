"""Measurements of sounds as tables and files: levels, features, tones, transfer, calibrate."""
