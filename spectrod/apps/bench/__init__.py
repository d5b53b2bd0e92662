"""``spectrod bench``: measurements of transforms, spectra and the pipeline, and of peers.

This package holds everything that exists only to measure or to test: baselines, peers, test signals
that carry their own sample numbers, rings that check them.
"""
