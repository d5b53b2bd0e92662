"""Long-term views: the levels of a long recording, and how often they occur."""
