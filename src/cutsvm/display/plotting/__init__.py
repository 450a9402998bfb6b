"""Plots with matplotlib. The public names are in `cutsvm.plotting`."""
