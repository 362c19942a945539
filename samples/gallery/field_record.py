"""
A shot record
=============

The shot record in ``samples/seismic.dat`` has 24 traces in SEG-2 format, with white noise and wind noise at a
signal-to-noise ratio of 6 dB. It is synthetic, so the gain can be measured against the clean record.
"""

import matplotlib.pyplot as plt
import numpy as np

import wavefilt
from wavefilt import quality

recording = wavefilt.read("../seismic.dat")
denoised = recording.denoise()  # the recipe: rule "js", sym8, MODWT with 6 levels
residual = recording.residual(denoised)

# %%
# All panels have the same amplitude scale. Coherent arrivals in the residual would indicate signal leakage.

scale = np.percentile(np.abs(recording.samples), 98)
seconds = recording.interval * recording.samples.shape[1]
figure, panels = plt.subplots(1, 3, figsize=(10, 5.5), sharey=True, layout="constrained")
records = {"before": recording, "after": denoised, "residual": residual}
for panel, (name, shown) in zip(panels, records.items(), strict=True):
    panel.imshow(shown.samples.T, cmap="gray", vmin=-scale, vmax=scale, aspect="auto", extent=(0.5, 24.5, seconds, 0))
    panel.set(title=name, xlabel="channel")
panels[0].set_ylabel("time in s")
plt.show()

# %%
# The signal-to-noise ratio is computed over all samples against the clean record. The tests of ``Recording.trust`` need
# no clean record. The recipe gains more than the preset "gentle"; both leave no signal in the residual. The recipe is
# undecided because nothing in the record declares its noise. Channel 17 is dead and is returned unchanged.

clean = np.load("../seismic_clean.npy")
print(f"before: {quality.snr(clean.ravel(), recording.samples.ravel()):.1f} dB")
for name, result in {"recipe": denoised, "gentle": recording.denoise(preset="gentle")}.items():
    snr = quality.snr(clean.ravel(), result.samples.ravel())
    print(f"{name}: {snr:.1f} dB, {result.trust(recording).summary()}")

# %%
# ``Recording.plot`` draws such figures, with spectra and thresholds unless ``panels`` leaves them out. Here the traces
# are images at the offsets that the SEG-2 headers give, each with automatic gain control over 0.2 s.

recording.plot(denoised, panels="before,after,residual", display="density", gain="agc:0.2", traces_by="offset", clip=97)
