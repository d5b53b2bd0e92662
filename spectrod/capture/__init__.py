"""The child process that runs PortAudio: ``python -m spectrod.capture``.

It is small, to start quickly and use little memory: it imports only this subpackage and
sounddevice.
"""
