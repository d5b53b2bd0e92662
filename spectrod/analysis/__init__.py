"""Frames to spectra: the engines, the streaming STFT and the one-call spectrogram."""
