"""Search for the fastest kernels of a device."""
