"""File formats of recordings: pictures, segments, exports, sound; what they have in common."""
