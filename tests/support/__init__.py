"""Helpers of the tests: data, layouts, references, the documentation's code blocks."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
