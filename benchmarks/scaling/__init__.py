"""The scaling study: one denoising run at 64 Ki to 64 Mi samples by every library that can do it."""
