"""Answers from a model's file without torch: a list of operations that NumPy carries out and ONNX files can hold."""
