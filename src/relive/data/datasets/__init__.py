"""The data sets by name: where each comes from, and how it is known to be right."""
