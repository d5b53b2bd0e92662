"""``spectrod bench``: measurements of transforms, spectra and the pipeline, beside peers.

Everything that exists only to measure or to test is here: baselines, peers, test signals that say
their own numbers, rings that check them. The package ``spectrod`` imports none of it; its command
line loads ``spectrod_bench.command`` by name.
"""
