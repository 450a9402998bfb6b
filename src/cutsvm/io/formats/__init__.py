"""One module per kind of file that rows are read from."""
