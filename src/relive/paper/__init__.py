"""The paper as data: published cells, presets, grids, and how our numbers compare. The toolkit knows nothing of it."""
