"""Settings: TOML, environment and flags to frozen structs, with each mistake and its place.

It knows what settings mean (``measure``, ``wire``, ``dsp``), but nothing that they configure.
"""
