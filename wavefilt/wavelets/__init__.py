"""Wavelets as filter banks, coefficient lengths, and how signals go on beyond their ends (boundary modes)."""
