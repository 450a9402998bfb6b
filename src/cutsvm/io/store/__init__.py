"""Stores: folders of memory-mapped blocks for data larger than memory."""
