"""What a machine needs before a run: configuration, devices, keys, completion of commands."""
