"""Malformed files and command lines: every one is accepted or refused, and nothing crashes."""
