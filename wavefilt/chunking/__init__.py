"""Traces in chunks with halos, and denoising by passes over them."""
