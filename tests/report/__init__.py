"""Tests of tables, figures, claims and the page."""
