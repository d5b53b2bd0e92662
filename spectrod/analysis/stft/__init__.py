"""The fused short-time Fourier transform: samples in a device's memory to what is asked for."""
