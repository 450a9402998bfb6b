"""Model files: ours, and those of LIBLINEAR."""
