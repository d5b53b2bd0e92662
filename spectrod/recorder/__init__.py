"""What a daemon records by itself: when, where to, how much is kept."""
