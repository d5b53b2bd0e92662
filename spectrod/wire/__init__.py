"""Spectra as ZeroMQ messages: the schema and endpoints (pure), and the publisher.

Nothing is imported here, so that a subscriber gets the schema without the publisher.
"""
