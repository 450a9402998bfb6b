"""Tests of cutsvm; the folders are those of the package, helpers are in support/."""
