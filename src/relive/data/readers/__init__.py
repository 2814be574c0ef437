"""One's own data: CSV, Parquet, NPZ and folders of pictures."""
