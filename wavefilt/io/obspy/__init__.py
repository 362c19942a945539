"""Waveform formats through ObsPy."""
