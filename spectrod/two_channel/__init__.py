"""Two channels: transfer function, coherence, delay, and impulse responses by sweeps."""
