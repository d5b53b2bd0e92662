"""Sound cards: the capture process from outside, its devices, and the times of its samples."""
