"""Numbers for machines: metrics of a running daemon, their text formats, and HTTP.

Reads counters of the daemon's parts and changes nothing.
"""
