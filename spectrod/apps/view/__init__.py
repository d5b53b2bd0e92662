"""The terminal view of a daemon, a subscriber as any other: spectrum, waterfall, measurements."""
