"""Fuzzing of every reader: `python -m tests.fuzz.run --target npz --inputs 10000`."""
