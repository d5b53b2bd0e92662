"""Figures of measurements, drawn by matplotlib: histories, levels in bands, spectra, Bode plots.

Nothing here imports matplotlib before a figure is made, and nothing uses its global figures.
"""
