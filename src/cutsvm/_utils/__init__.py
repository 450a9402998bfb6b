"""Private helpers that know nothing of support vector machines: validation, threads, memory, errors, types."""
