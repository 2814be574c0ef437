"""The scikit-learn estimator and its parts, and the model file."""
