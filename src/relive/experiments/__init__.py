"""Runs: specs, results, where they are stored, and comparisons."""
