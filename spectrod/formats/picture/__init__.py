"""Spectrogram pictures: pixels from spectra, with axes and text around them."""
