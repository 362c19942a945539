"""
A synthetic DAS patch
=====================

Distributed acoustic sensing (DAS) records thousands of channels along a fibre, with strong white noise. This example
uses 256 synthetic channels at a spacing of 4 m and a sampling rate of 500 Hz, with two waves, a vehicle, and a noise
level that differs between channels.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

import wavefilt
from wavefilt import quality

random = np.random.default_rng(7)
time, distance = np.arange(1024) / 500, 4.0 * np.arange(256)


def pulse(at, frequency):
    """Ricker wavelets, one per channel, at these times."""
    square = (np.pi * frequency * (time - at[:, None])) ** 2
    return (1 - 2 * square) * np.exp(-square)


clean = pulse(0.25 + distance / 1600, 30) + 0.8 * pulse(0.5 + distance / 900, 22) - 0.6 * pulse(1.9 - distance / 700, 8)
loudness = random.uniform(0.3, 0.6, (256, 1)) * np.where(random.random((256, 1)) < 0.05, 4, 1)
noisy = (clean + loudness * random.standard_normal(clean.shape)).astype("float32")

# %%
# Thresholds are computed per channel from the noise of that channel, so noisy channels need no special treatment. The
# undecimated transform gains more, at several times the cost.

denoised = wavefilt.denoise(noisy, rule="sure", transform="modwt")

images = {"before": noisy, "after": denoised, "residual": noisy - denoised}
extent = (time[0], time[-1], distance[-1], distance[0])
figure, panels = plt.subplots(1, 3, figsize=(10, 4.5), sharey=True, layout="constrained")
for panel, (name, shown) in zip(panels, images.items(), strict=True):
    panel.imshow(shown, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="none", extent=extent)
    panel.set(title=name, xlabel="time in s")
panels[0].set_ylabel("distance along the fibre in m")
plt.show()

gains = quality.snr(clean, denoised) - quality.snr(clean, noisy)
print(f"gain: {np.median(gains):.1f} dB in the median channel, {gains.min():.1f} to {gains.max():.1f} dB")

# %%
# With DASCore, denoising is a method of the patch, which keeps its coordinates and records the processing history.

if find_spec("dascore"):
    import dascore

    patch = dascore.Patch(data=noisy, coords={"distance": distance, "time": time}, dims=("distance", "time"))
    denoised_patch = patch.wavefilt.denoise(dim="time", rule="sure", transform="modwt")
    print("the same samples:", np.array_equal(denoised_patch.data, denoised))
    print(denoised_patch.attrs.history[-1].replace(", ", ",\n    "))
