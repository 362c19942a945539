"""Compiling, memory, streams, transfers and arrays of other libraries."""
