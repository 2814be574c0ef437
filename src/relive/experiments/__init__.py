"""Runs: specs, results, where they are kept, and what the paper reports."""
