"""What a spectrum means: windows, bands, weightings, units, calibration, blocks and rows.

It knows ``lib``; it computes no transform and opens no device or file of samples.
"""
