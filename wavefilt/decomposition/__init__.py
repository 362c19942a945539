"""The public transforms, with PyWavelets' signatures and values."""
