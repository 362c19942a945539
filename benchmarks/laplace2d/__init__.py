"""The study of the 2-D Laplace filter."""
