"""File formats of recordings: pictures, segments, exports, sound, and their common parts."""
