"""How fast it is and how much memory it takes, as ratios within one run: ``make bench``."""
