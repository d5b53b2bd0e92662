"""What a running daemon writes to files: rotation, retention, schedules, events, faults."""
