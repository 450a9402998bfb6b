"""Buckets of rows by their distance from the margin: rows that cannot cross it are not read."""
