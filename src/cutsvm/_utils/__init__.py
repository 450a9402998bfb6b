"""Private helpers: validation, threads, memory, warnings, errors, types."""
