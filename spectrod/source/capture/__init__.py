"""The child process that runs PortAudio: ``python -m spectrod.source.capture``.

It is small, to start quickly and use little memory: it imports only this subpackage and
sounddevice.
"""
