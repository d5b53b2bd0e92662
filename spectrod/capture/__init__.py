"""The child process that has PortAudio: ``python -m spectrod.capture``.

It is kept small, so that it starts quickly and holds little: of the package it imports nothing but
itself, and of others sounddevice alone.
"""
