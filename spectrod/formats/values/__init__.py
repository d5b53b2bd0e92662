"""Files of sound levels: one row for each interval."""
