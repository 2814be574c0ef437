"""How far a model's confidence, its refusals and its self-report can be trusted, measured on real data."""
