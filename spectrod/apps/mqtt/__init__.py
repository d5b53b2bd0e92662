"""Bridges: programs that subscribe to a daemon and publish over another protocol."""
