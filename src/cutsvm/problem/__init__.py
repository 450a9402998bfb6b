"""The optimisation problem as a solver sees it: oracle, losses, line searches, planes and their rounding errors."""
