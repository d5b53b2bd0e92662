"""Recording to files: rotation, retention, schedules, triggers and error handling."""
