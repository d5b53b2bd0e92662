"""Measurements of the FFT engine and its peers: what is run, how it is timed, and tables of it.

Nothing here is needed to use spectrod. Peers are imported when they are measured, where they are
installed.
"""
