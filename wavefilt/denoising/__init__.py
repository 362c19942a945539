"""Denoising of arrays: the steps, gaps, two dimensions, arrays on a GPU."""
