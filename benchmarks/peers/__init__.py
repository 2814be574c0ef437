"""Other continual-learning libraries on the same work as relive, in an environment of their own."""

from benchmarks.peers import cpu_torchvision as cpu_torchvision  # before anything imports torchvision
