"""Spectra as ZeroMQ messages: the schema and endpoints (pure), and the publisher.

This package imports nothing here: a subscriber imports the schema without the publisher.
"""
