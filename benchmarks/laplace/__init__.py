"""The Laplace studies: rows of samples (1-D, a lesson of 2008) and RGB images (2-D, a course of 2017)."""
