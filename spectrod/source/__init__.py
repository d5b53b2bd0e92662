"""Where samples come from: sound cards, files, object stores, test signals, and the ring.

It knows ``config`` and ``formats``, and no analysis. Empty, since the capture process imports it.
"""
