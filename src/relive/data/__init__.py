"""Data: tasks, the protocols that make them, data sets by name, and readers of the user's own files."""
