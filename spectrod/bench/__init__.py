"""Measurements beside peers: transforms, spectra, the pipeline.

Nothing here is needed to use spectrod. Peers are imported when they are measured, where they are
installed.
"""
