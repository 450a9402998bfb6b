"""Fits on more than one machine: the same tasks on threads, Dask, Ray or Spark."""
