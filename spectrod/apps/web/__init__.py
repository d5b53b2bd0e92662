"""The page of ``spectrod web``: a subscriber that serves spectra to browsers.

``Hub`` is its core: it subscribes to daemons, and sends each browser the rows that it asked for.
``docs/web-protocol.md`` defines what passes between them.
"""
