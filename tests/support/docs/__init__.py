"""Finds and runs the code blocks of the documentation."""
