"""Threshold rules and threshold functions."""
