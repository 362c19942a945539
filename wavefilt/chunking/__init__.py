"""Traces in chunks with halos (`chunks`), and denoising by passes over them (`passes`)."""
