"""Other continual-learning libraries on the same tasks as relive, in a separate environment."""

from benchmarks.peers import cpu_torchvision as cpu_torchvision  # before anything imports torchvision
