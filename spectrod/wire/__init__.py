"""The protocol: topics, headers, messages, requests, endpoints, keys. It opens no socket.

It knows ``lib`` and ``dsp``, so that a subscriber needs nothing else.
"""
