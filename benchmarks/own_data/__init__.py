"""The benchmark on real data: what an engineer could choose for classes that arrive one after another, side by side."""
