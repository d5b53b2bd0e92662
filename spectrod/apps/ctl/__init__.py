"""Requests to a running daemon, and what it answers, as text."""
