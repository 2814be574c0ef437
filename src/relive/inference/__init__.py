"""Prediction from a model file without torch: a list of operations that NumPy executes and ONNX files can hold."""
