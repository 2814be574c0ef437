"""The benchmark on real data: what an engineer could pick for classes that come one after another, side by side."""
