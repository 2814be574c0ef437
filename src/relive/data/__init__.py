"""Data: tasks, the protocols that make them, data sets by name, and readers of one's own files."""
