"""Sound levels in the time domain: weightings as filters, levels, loudness."""
