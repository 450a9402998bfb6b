"""Runs a solver: stopping rule, callbacks, history, paths over C, checkpoints, warm starts, timing."""
