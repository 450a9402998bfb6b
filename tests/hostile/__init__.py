"""Certificates under hostile numerics: random problems against an optimum in extended precision.

`python -m tests.hostile.run --help` runs many of them; `test_hostile.py` has a small fixed set for the ordinary suite.
"""
