"""Recordings as datasets of xarray, which read what is asked for."""
