"""Several GPUs of one host as one backend."""
