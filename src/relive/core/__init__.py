"""The core of learning: the training loop, its rows, losses and scenarios, and the definition of a method."""
