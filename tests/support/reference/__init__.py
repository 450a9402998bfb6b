"""NumPy twins of the compiled kernels: slow, short and easy to verify."""
