"""
Rules side by side
==================

One trace whose clean form is known, under white noise and under pink noise, denoised with every rule.
"""

import matplotlib.pyplot as plt
import numpy as np

import wavefilt
from wavefilt import quality
from wavefilt.vocabulary import RULES

random = np.random.default_rng(11)
time = np.arange(2048) / 1000
clean = np.zeros(2048)
for arrival, frequency, size in [(0.3, 60, 4), (0.55, 45, -3), (0.9, 35, 2), (1.3, 30, 1.5), (1.65, 25, 1)]:
    late = np.maximum(time - arrival, 0)
    clean += size * 8 * frequency * late * np.exp(-frequency * late) * np.sin(2 * np.pi * frequency * late)

white = random.standard_normal(2048)
frequencies = np.fft.rfftfreq(2048)
frequencies[0] = frequencies[1]
pink = np.fft.irfft(np.fft.rfft(random.standard_normal(2048)) / np.sqrt(frequencies))
noises = {"white": white, "pink": pink / pink.std()}
noisy = {name: clean + 0.4 * clean.std() * noise / noise.std() for name, noise in noises.items()}

# %%
# What each leaves of the white noise. ``universal`` leaves nothing of the noise, and least of the weak arrivals;
# the rules at the top keep them, with some noise about.

quiet = {(noise, rule): wavefilt.denoise(x, rule=rule) for noise, x in noisy.items() for rule in RULES}
gain = {
    (noise, rule): float(quality.snr(clean, y) - quality.snr(clean, noisy[noise])) for (noise, rule), y in quiet.items()
}
ranked = sorted(RULES, key=lambda rule: -gain["white", rule])

figure, rows = plt.subplots(len(ranked) + 1, 1, figsize=(10, 11), sharex=True, sharey=True, layout="constrained")
for row, name in zip(rows, ["before", *ranked], strict=True):
    row.plot(time, noisy["white"] if name == "before" else quiet["white", name], color="#0072B2", linewidth=0.8)
    row.plot(time, clean, color="black", linewidth=0.5)
    row.set_title(name if name == "before" else f"{name}: {gain['white', name]:+.1f} dB", loc="left", fontsize=10, pad=2)
rows[0].set_xlim(time[0], time[-1])
rows[-1].set_xlabel("time in s (black: the clean trace)")
plt.show()

# %%
# Pink noise lies in the band of the signal, and every rule gains less there. Each level's own noise (the default) is
# what helps; with the noise of the finest level alone (``sigma="global"``) nearly all of it stays.

finest = {
    rule: float(quality.snr(clean, wavefilt.denoise(noisy["pink"], rule=rule, sigma="global"))) for rule in RULES
}
columns = {
    "white": [gain["white", rule] for rule in ranked],
    "pink": [gain["pink", rule] for rule in ranked],
    'pink, sigma="global"': [finest[rule] - float(quality.snr(clean, noisy["pink"])) for rule in ranked],
}
figure, axes = plt.subplots(figsize=(10, 4.5), layout="constrained")
places = np.arange(len(ranked))
for i, ((name, values), colour) in enumerate(zip(columns.items(), ["#0072B2", "#D55E00", "#CC79A7"], strict=True)):
    axes.bar(places + 0.27 * (i - 1), values, 0.25, color=colour, label=name)
axes.set_xticks(places, ranked)
axes.set_ylabel("gain in dB")
axes.axhline(0, color="black", linewidth=0.8)
axes.legend()
plt.show()

for rule in ranked:
    print(f"{rule:13}  white {gain['white', rule]:+5.1f} dB   pink {gain['pink', rule]:+5.1f} dB")
