"""The paper as data: published cells, presets, grids, and how ours compare. The toolkit does not depend on it."""
