"""Readers for the user's own data: CSV, Parquet, NPZ and folders of images."""
