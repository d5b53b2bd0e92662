"""Recordings, pyramids and results of ``spectrod batch`` behind the page, without a daemon.

Knows ``history``, which reads them, and what sends pages their texts; no feed and no hub.
"""
