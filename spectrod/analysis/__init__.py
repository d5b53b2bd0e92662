"""Samples to rows of spectra: the engines, the streaming STFT and the one-call spectrogram.

It knows ``fft``, ``opencl`` and ``dsp``; ``analysis.stft`` is the host side of the fused kernels.
"""
