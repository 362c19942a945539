"""Thresholds chosen, and coefficients shrunk, on the device."""
