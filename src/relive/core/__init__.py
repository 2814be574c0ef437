"""What learns: the one training loop, its rows, losses and scenarios, and what a method is."""
