"""What kernels do, counted for the SKE model."""
