"""Bridges: programs beside the daemon that subscribe as anyone does, and speak something else."""
