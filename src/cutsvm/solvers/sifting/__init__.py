"""Sifting: the problem over a working set of rows, with full passes that certify it."""
