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
PRIOR = 5  # samples in which the variances of inputs within all classes are taken to have been seen
NEAR_RIDGE, RELATIVE_RIDGE = 0.01, 1.0  # of the two distances that measure novelty, in units of a variance
STILL = 1e-4  # a feature that varies by less than this share of the most variable one does not vary: it may be rounding

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
            not_when="for anything that is to be remembered",
            colour="#6f6f6f",
            marker="X",
        ),
        MethodFacts(
            "xdg",
            "relive.methods.xdg:XdG",
            "XdG",
            "Masse et al. 2018, context-dependent gating",
            scenarios=("task",),
            why_not="it chooses which units to gate by the task, so the task must be known when predicting",
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
            use_when="in Task-IL, where a network is trained and the task is given with every question",
            not_when="where the task is not known when predicting, or where tasks are so many that units run out",
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
            use_when="in Task-IL with a large λ, and where tasks share their classes, as in permuted MNIST",
            not_when="in Class-IL, where no λ helps: it holds weights, but never compares old classes with new ones",
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
            use_when="as EWC, with many tasks: what it keeps does not grow with them",
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
            not_when="in Class-IL, and without searching c first",
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
            not_when="where inputs of the tasks differ much, as in permuted MNIST, and in Class-IL",
            colour="#e69f00",
            marker="v",
        ),
        MethodFacts(
            "dgr",
            "relive.methods.generative_replay:DGR",
            "DGR",
            "Shin et al. 2017, deep generative replay",
            choices=("generative_loss",),
            use_when="to compare with: generative replay as it was first published",
            not_when=(
                "where `rtf` can be used, which trains one network instead of two, or where samples are too "
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
            use_when="to have a classifier of any architecture, with a generator that is separate from it",
            not_when="where `rtf` can be used, which trains one network instead of two",
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
                "in all three scenarios if a network of your own must be trained, and no sample may be kept; "
                "it shows what it remembers"
            ),
            not_when=(
                "where fixed features are good enough (`discriminant` is more accurate and much faster), or "
                "where samples are too hard to generate, as photographs are"
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
            not_when="where earlier data are gone, which is what this package is about",
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
            use_when="as `rtf`, if classes are to be replayed evenly and samples should look like one class each",
            not_when="where fixed features are good enough, or where samples are too hard to generate",
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
            use_when="in Class-IL, if every class should be learned by itself: no class can disturb another",
            not_when=(
                "if answers must be fast, since every class's network is asked many times, or if there are "
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
            use_when="to compare with: the oldest kind of replay, which needs no generator",
            not_when="where inputs are structured, as pictures are: noise says little about them",
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
            use_when="if some samples may be kept: it is the simplest way to use them",
            not_when="if samples must not be kept",
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
            use_when="if some samples may be kept and a step must not raise their loss",
            not_when="if samples must not be kept",
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
            use_when="in Class-IL with trained features, if some samples may be kept",
            not_when="if samples must not be kept",
            colour="#8c510a",
            marker="4",
        ),
        MethodFacts(
            "ncm",
            "relive.methods.ncm:NCM",
            "NCM",
            "nearest class mean, in closed form",
            encoder="inputs",
            use_when="for the smallest model there is, on features of a good frozen network",
            not_when="on raw measurements of different scales, or where classes differ in more than their means",
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
            not_when="where classes cannot be divided by hyperplanes in the given features",
            colour="#2f7f86",
            marker="*",
        ),
        MethodFacts(
            "analytic",
            "relive.methods.analytic:Analytic",
            "Analytic",
            "ridge regression on random features; as in McDonnell et al. 2023, RanPAC",
            settings=(RIDGE, NUMBERS),
            encoder="random",
            use_when="for pictures of digits, signs and the like, and to compare with `discriminant` on tables",
            not_when="for photographs without features of a frozen network, and where tasks change what inputs mean",
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
            use_when="first: it is what `auto` takes for new classes, on tables, embeddings and small pictures",
            not_when=(
                "where every task changes what inputs mean (`domains`), for photographs without features of a "
                "frozen network, or where a network is to be trained"
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
                "where tasks of 600 samples or more change what inputs mean, as permuted pixels do, and in "
                "Domain-IL on rows of numbers"
            ),
            not_when="with few samples per task, or where memory is scarce: it grows with every domain",
            colour="#33691e",
            marker="$K$",
        ),
    ],
)
