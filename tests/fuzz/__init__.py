"""Fuzzing of every way in: `python -m tests.fuzz.run --target npz --inputs 10000`."""
