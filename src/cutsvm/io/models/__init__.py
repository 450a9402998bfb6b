"""Model files of cutsvm and of LIBLINEAR, and the tasks of models."""
