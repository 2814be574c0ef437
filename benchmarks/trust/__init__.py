"""How far a model's confidence, its refusals and its account of itself can be trusted, measured on real data."""
