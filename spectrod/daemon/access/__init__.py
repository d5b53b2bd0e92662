"""Who may connect, and how much: keys, limits, and defence against what libzmq accepts."""
