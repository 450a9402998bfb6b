"""What Arnosti's paper prints, and the names that its tables and pictures share.

A figure of the paper's that is only in one of its pictures cannot be given; what its text says is quoted.
"""

from __future__ import annotations

OURS, SORTING = "cutsvm", "msvmocas"
PAPER, ONE, AUTO, BEFORE = "paper", "ours, one shard", "ours", "before"
LABELS = {
    PAPER: "the paper's algorithm",
    "paper, first_steps": "the paper's algorithm, 0.02 in the first five",
    "paper, every_zero": "the paper's algorithm, 0.02 for every 0",
    ONE: "ours, one shard",
    f"{ONE}, none": 'ours, one shard, `guard="none"`',
    AUTO: "ours",
    "ours, first_steps": 'ours, one shard, `guard="first_steps"`',
    "ours, every_zero": 'ours, one shard, `guard="every_zero"`',
    "ours, safe start 0.5": "ours, one shard, `first_step=0.5`",
    BEFORE: "ours before",
    f"{BEFORE}, none": "ours before, no guard",
}
MEASURES = ("seconds", "seconds_search", "iterations")
SETS = {"fig2": "covtype", "fig3": "mnist"}
# By search: time, search time and iterations over those of the exact search, as the text gives them; error in %.
RATIOS = {
    "fig2": {
        "exact": ("1", "1", "1", "35.92"),
        "gca2": ("about 0.61", "0.30 to 0.35", "below 1.10", "35.90"),
        "tca": ("about 0.61", "0.30 to 0.35", "below 1.10", "35.84"),
    },
    "fig3": {
        "exact": ("1", "1", "1", "5.57"),
        "gca2": ("about 0.86", "below 0.30", "1.02 to 1.03", "5.56"),
        "tca": ("about 0.86", "below 0.30", "1.02 to 1.03", "5.56"),
    },
}
# The same as numbers, for the picture.
BARS = {"fig2": (0.61, 0.325, 1.1), "fig3": (0.86, 0.3, 1.025)}
SEARCH_SHARE = {"fig2": 56.0, "fig3": 21.0}
# Features -> share of the search in %. Its text set is RCV1, ours is news20; "all" is in its section IV.A.
FEATURES = {
    "mnist-10": {784: 18.8, 473: 25.1, 337: 36.7, 139: 57.2},
    "news20": {62061: 7.8, 4373: 30.0, 2368: 31.9, 676: 42.5, 186: 56.4},
}
PAPERS_FEATURES = {784: 780, 62061: 47236}
# Section V: iterations, and those with a step of zero.
STALLS = {
    ("poker", "exact", PAPER): ("1454", "1451"),
    ("poker", "gca2", PAPER): ("235", ""),
    ("poker", "tca", PAPER): ("234", ""),
    ("poker", "exact", "paper, first_steps"): ("231", ""),
    ("covtype-7", "exact", PAPER): ("744", "490"),
    ("covtype-7", "gca2", PAPER): ("686", ""),
    ("covtype-7", "tca", PAPER): ("603", ""),
    ("covtype-7", "exact", "paper, every_zero"): ("569", ""),
}
# What the text says of iterations and errors, the latter in %.
KNOWN = {
    ("covtype-7", 1.0): ("", "35.92"),
    ("covtype-7", 100.0): ("744", ""),
    ("mnist-10", 1.0): ("", "5.57"),
    ("mnist-10-raw", 1.0): ("", "5.57"),
    ("poker", 1.0): ("1454", "50"),
}
PARTS = {
    "seconds_scores": "scores",
    "seconds_planes": "planes",
    "seconds_search": "line search",
    "seconds_qp": "reduced problem",
    "seconds_rest": "rest",
}
