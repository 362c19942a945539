"""The reference backend: PyWavelets and NumPy."""
