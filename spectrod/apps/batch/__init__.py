"""Archives: jobs of many recordings, computed in units of a day or an hour."""
