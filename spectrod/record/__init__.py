"""Recordings: pictures, segments, exports, sound; what all of them have in common."""
