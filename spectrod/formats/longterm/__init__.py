"""Long-term views: what the levels of a long recording were, and how often."""
