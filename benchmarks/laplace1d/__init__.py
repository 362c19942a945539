"""The study of the 1-D Laplace operator."""
