"""How often a table would call a cell different from the paper's if all runs had the published means and spreads.

``python -m benchmarks.false_alarms`` prints it for split MNIST, for several numbers of runs per cell.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import ttest_ind

from relive._util.statistics import ALPHA
from relive.paper.published import PUBLISHED, RUNS_PER_CELL

RUNS = (3, 4, 5, 10, 20)


def false_alarms(n: int, tables: int = 4000, protocol: str = "split") -> float:
    """Return the share of simulated tables in which Welch's test with Holm's correction finds at least one difference.

    Ours have n runs per cell, the paper's 20; both are drawn from normal distributions. Holm's correction finds a
    difference if the smallest p-value, times the number of cells, is at most 0.05.
    """
    rng = np.random.default_rng(n)
    cells = [cell for (which, _, _), cell in PUBLISHED.items() if which == protocol]
    smallest = np.ones(tables)
    for cell in cells:
        spread = cell.sem * RUNS_PER_CELL**0.5
        ours, theirs = (rng.normal(cell.mean, spread, (runs, tables)) for runs in (n, RUNS_PER_CELL))
        smallest = np.minimum(smallest, ttest_ind(ours, theirs, equal_var=False).pvalue)
    return float((smallest * len(cells) <= ALPHA).mean())


if __name__ == "__main__":
    for n in RUNS:
        print(f"n = {n}: {false_alarms(n):.1%}")
