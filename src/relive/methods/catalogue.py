"""The methods that come with the package: every fact about them, once, readable without torch."""

from __future__ import annotations

import math

from relive._util.registry import Registry
from relive.core.facts import MethodFacts, Setting

STRONGEST = 1e38  # the highest strength of a regulariser: what float32 can hold
LAMBDA = Setting("lam", 5000.0, 0, STRONGEST, "λ, the strength of the penalty", "λ")
CHOSEN = "0 to choose it from the sums"
SHRINKAGE = Setting("shrinkage", 0.0, 0, 1, f"how far the covariance is shrunk towards a diagonal one; {CHOSEN}")
NOISE = Setting(
    "noise",
    0.0,
    0,
    1e3,
    "σ, the standard deviation of the noise on each sum, in units of what one sample can add to it",
    "σ",
)
RIDGE = Setting(
    "ridge", 0.0, 0, 1e6, f"λ, the strength of the penalty, in units of a feature's variance; {CHOSEN}", "λ"
)
NUMBERS = Setting("numbers", 2e6, 1e3, 1e10, "how many numbers it may store in all; determines the number of features")
BUDGET = Setting("budget", 200.0, 1, 1e7, "how many samples are stored in all")

# of relive.methods.discriminant and relive.methods.input_gaussians
WEIGHT, WEIGHT_ON_AXES = 0.25, 0.5  # of the second classifier
FLOOR = 0.01  # of the variances, in units of the mean variance
PRIOR = 5  # pseudo-samples with which the pooled variances of inputs are weighted
NEAR_RIDGE, RELATIVE_RIDGE = 0.01, 1.0  # of the two novelty distances, in units of a variance
STILL = 1e-4  # a feature that varies by less than this share of the most variable one counts as constant: rounding

# The colours are safe for the colour-blind (Okabe & Ito, with a violet, a wine red and a darker grey).
METHODS = Registry(
    "method",
    "relive.methods",
    [
        MethodFacts(
            "none",
            "relive.methods.none:FineTuning",
            "None",
            "fine-tuning, the lower bound",
            bound="lower bound",
            use_when="to see how much is forgotten: it is the lower bound of every comparison",
            not_when="for anything that has to be remembered",
            colour="#6f6f6f",
            marker="X",
        ),
        MethodFacts(
            "xdg",
            "relive.methods.xdg:XdG",
            "XdG",
            "Masse et al. 2018, context-dependent gating",
            scenarios=("task",),
            why_not="it chooses the gated units by the task, so the task must be known at test time",
            settings=(
                Setting(
                    "proportion",
                    0.95,
                    0,
                    0.99,
                    "X, the share of each hidden layer's units that is gated off",
                    "X",
                    percent=True,
                ),
            ),
            choices=("xdg_gate",),
            use_when="in Task-IL, when training a network and the task is given with every sample",
            not_when="if the task is not known at test time, or if there are so many tasks that units run out",
            colour="#4b2e83",
            marker="P",
        ),
        MethodFacts(
            "ewc",
            "relive.methods.ewc:EWC",
            "EWC",
            "Kirkpatrick et al. 2017, elastic weight consolidation",
            settings=(LAMBDA,),
            choices=("fisher_labels", "fisher_divisor"),
            use_when="in Task-IL with a large λ, and if tasks share their classes, as in permuted MNIST",
            not_when="in Class-IL, where no λ helps: it protects weights, but never compares old classes with new ones",
            colour="#0072b2",
            marker="s",
        ),
        MethodFacts(
            "online-ewc",
            "relive.methods.ewc:OnlineEWC",
            "Online EWC",
            "Schwarz et al. 2018, Progress & Compress",
            settings=(
                LAMBDA,
                Setting(
                    "gamma", 1.0, 0, 1, "γ, how much of the earlier tasks' importance is kept with each new task", "γ"
                ),
            ),
            choices=("fisher_labels", "fisher_divisor", "online_ewc"),
            use_when="like EWC, with many tasks: its memory does not grow with them",
            not_when="in Class-IL, for the same reason as EWC",
            colour="#56b4e9",
            marker="D",
        ),
        MethodFacts(
            "si",
            "relive.methods.si:SI",
            "SI",
            "Zenke et al. 2017, synaptic intelligence",
            settings=(
                Setting("c", 0.1, 0, STRONGEST, "the strength of the penalty", "c"),
                Setting(
                    "xi", 0.1, 1e-12, math.inf, "ξ, keeps importances finite for parameters that hardly moved", "ξ"
                ),
            ),
            use_when=(
                "in Task-IL, and in Domain-IL on permuted inputs: its importances cost nothing beyond the "
                "steps themselves"
            ),
            not_when="in Class-IL, or without searching for c first",
            colour="#009e73",
            marker="^",
        ),
        MethodFacts(
            "lwf",
            "relive.methods.lwf:LwF",
            "LwF",
            "Li & Hoiem 2017, learning without forgetting",
            choices=("distillation_loss",),
            use_when="in Task-IL, if new inputs look like old ones: it needs neither stored nor generated samples",
            not_when="if the inputs of the tasks differ a lot, as in permuted MNIST, and in Class-IL",
            colour="#e69f00",
            marker="v",
        ),
        MethodFacts(
            "dgr",
            "relive.methods.generative_replay:DGR",
            "DGR",
            "Shin et al. 2017, deep generative replay",
            choices=("generative_loss",),
            use_when="as a baseline: generative replay as first published",
            not_when=(
                "if you can use `rtf`, which trains one network instead of two, or if samples are too "
                "hard to generate, as photographs are"
            ),
            colour="#882255",
            marker="<",
        ),
        MethodFacts(
            "dgr-distill",
            "relive.methods.generative_replay:DGRDistill",
            "DGR+distill",
            "van de Ven & Tolias 2018, DGR with soft targets",
            choices=("generative_loss", "distillation_loss"),
            use_when="for a classifier of any architecture, with a separate generator",
            not_when="if you can use `rtf`, which trains one network instead of two",
            colour="#cc79a7",
            marker=">",
        ),
        MethodFacts(
            "rtf",
            "relive.methods.generative_replay:RtF",
            "RtF",
            "van de Ven & Tolias 2018, Replay-through-Feedback",
            choices=("generative_loss", "distillation_loss"),
            use_when=(
                "in all three scenarios if you must train your own network and may not store samples; "
                "it can show what it remembers"
            ),
            not_when=(
                "if fixed features are good enough (`discriminant` is more accurate and much faster), or "
                "if samples are too hard to generate, as photographs are"
            ),
            colour="#d55e00",
            marker="o",
        ),
        MethodFacts(
            "offline",
            "relive.methods.offline:Offline",
            "Offline",
            "joint training, the upper bound",
            keeps_data=True,
            needs_earlier_tasks=True,
            bound="upper bound",
            use_when="if all data may be kept: it is the upper bound of every comparison",
            not_when="if earlier data are gone, which is what this package is about",
            colour="#000000",
            marker="h",
        ),
        MethodFacts(
            "bir",
            "relive.methods.bir:BIR",
            "BI-R",
            "van de Ven et al. 2020, brain-inspired replay",
            settings=(
                Setting(
                    "gate",
                    0.1,
                    0,
                    0.99,
                    "the share of the decoder's hidden units that is switched off for each class",
                    percent=True,
                ),
            ),
            choices=("generative_loss", "distillation_loss"),
            use_when="like `rtf`, if classes should be replayed evenly and each sample should show one class",
            not_when="if fixed features are good enough, or if samples are too hard to generate",
            colour="#a50026",
            marker="H",
        ),
        MethodFacts(
            "generative-classifier",
            "relive.methods.generative_classifier:GenerativeClassification",
            "Gen. classifier",
            "van de Ven et al. 2021, a VAE per class",
            settings=(
                Setting("hidden", 85.0, 1, 1e5, "units in each hidden layer of a VAE"),
                Setting("latent", 5.0, 1, 1e5, "latent variables of a VAE"),
                Setting("samples", 10.0, 1, 1e6, "S, importance samples for each likelihood", "S"),
            ),
            use_when="in Class-IL, if every class should be learned separately: no class can interfere with another",
            not_when=(
                "if predictions must be fast, since every class's network is evaluated many times, or if there are "
                "very many classes"
            ),
            colour="#7b3294",
            marker="8",
        ),
        MethodFacts(
            "pseudo-rehearsal",
            "relive.methods.pseudo_rehearsal:PseudoRehearsal",
            "Pseudo-rehearsal",
            "Robins 1995, random inputs with the old network's answers",
            choices=("distillation_loss",),
            use_when="as a baseline: the oldest kind of replay, which needs no generator",
            not_when="if inputs are structured, as images are: noise says little about them",
            colour="#d8b365",
            marker="3",
        ),
        MethodFacts(
            "er",
            "relive.methods.er:ER",
            "ER",
            "Rolnick et al. 2019, experience replay",
            settings=(BUDGET,),
            keeps_data=True,
            use_when="if some samples may be stored: it is the simplest way to use them",
            not_when="if samples must not be stored",
            colour="#01665e",
            marker="+",
        ),
        MethodFacts(
            "agem",
            "relive.methods.er:AGEM",
            "A-GEM",
            "Chaudhry et al. 2019, averaged gradient episodic memory",
            settings=(BUDGET,),
            keeps_data=True,
            use_when="if some samples may be stored and a step must not increase their loss",
            not_when="if samples must not be stored",
            colour="#5ab4ac",
            marker="x",
        ),
        MethodFacts(
            "icarl",
            "relive.methods.icarl:ICaRL",
            "iCaRL",
            "Rebuffi et al. 2017, nearest mean of exemplars",
            settings=(BUDGET,),
            keeps_data=True,
            use_when="in Class-IL with trained features, if some samples may be stored",
            not_when="if samples must not be stored",
            colour="#8c510a",
            marker="4",
        ),
        MethodFacts(
            "ncm",
            "relive.methods.ncm:NCM",
            "NCM",
            "nearest class mean, in closed form",
            encoder="inputs",
            use_when="for the smallest possible model, on features of a good frozen network",
            not_when="on raw measurements of different scales, or if classes differ in more than their means",
            colour="#b8860b",
            marker="p",
        ),
        MethodFacts(
            "slda",
            "relive.methods.slda:SLDA",
            "SLDA",
            "Hayes & Kanan 2020, streaming linear discriminant analysis",
            settings=(SHRINKAGE, NOISE),
            encoder="inputs",
            use_when="for a small model, and on features of a frozen network; with `noise` it can hide single samples",
            not_when="if classes are not linearly separable in the given features",
            colour="#2f7f86",
            marker="$S$",
        ),
        MethodFacts(
            "analytic",
            "relive.methods.analytic:Analytic",
            "Analytic",
            "ridge regression on random features; as in McDonnell et al. 2023, RanPAC",
            settings=(RIDGE, NUMBERS),
            encoder="random",
            use_when="for images of digits, signs and the like, and as a baseline for `discriminant` on tables",
            not_when="for photographs without features of a frozen network, or if tasks change what inputs mean",
            colour="#7a1fa2",
            marker="d",
        ),
        MethodFacts(
            "discriminant",
            "relive.methods.discriminant:Discriminant",
            "Discriminant",
            "a linear discriminant on random features, and a Gaussian per class",
            settings=(NUMBERS,),
            encoder="random",
            use_when="first: it is what `auto` chooses for new classes, on tables, embeddings and small images",
            not_when=(
                "if every task changes what inputs mean (use `domains`), for photographs without features of a "
                "frozen network, or if a network has to be trained"
            ),
            colour="#c2185b",
            marker="$D$",
        ),
        MethodFacts(
            "domains",
            "relive.methods.domains:Domains",
            "Domains",
            "a discriminant for each group of tasks that cannot be told apart",
            settings=(
                Setting(
                    "numbers",
                    1.5e6,
                    1e3,
                    1e10,
                    "how many numbers each domain may store; determines the number of features",
                ),
            ),
            encoder="random-flat",
            use_when=(
                "if tasks of 600 samples or more change what inputs mean, as permuted pixels do, and in "
                "Domain-IL on rows of numbers"
            ),
            not_when="with few samples per task, or if memory is scarce: it grows with every domain",
            colour="#33691e",
            marker="$K$",
        ),
    ],
)
