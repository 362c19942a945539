"""What others measured: means of Xing, Carbonetto and Stephens, and the table that this library set out to beat."""

from __future__ import annotations

SIGNALS = ("Blocks", "Bumps", "Doppler", "Spikes", "Angles", "Blip", "Corner")
XING: dict[str, dict[int, tuple[tuple[float, float], ...]]] = {
    "BlockJS": {
        3: ((46.564, 0.459), (58.984, 0.634), (14.162, 0.226), (19.441, 0.283), (12.714, 0.208), (12.398, 0.266), (2.328, 0.056)),
        1: ((199.024, 2.1), (343.841, 4.102), (102.117, 1.752), (154.426, 2.815), (118.212, 2.212), (89.68, 1.654), (15.248, 0.437)),
    },
    "NeighBlock": {
        3: ((42.663, 0.469), (47.716, 0.554), (10.99, 0.18), (15.267, 0.252), (12.633, 0.209), (10.174, 0.242), (1.856, 0.049)),
        1: ((188.263, 2.286), (330.266, 3.816), (66.568, 1.239), (143.607, 2.832), (134.37, 2.808), (82.727, 1.509), (10.648, 0.403)),
    },
    "SURE": {
        3: ((53.889, 1.027), (63.02, 0.986), (38.183, 1.225), (39.464, 1.596), (51.588, 2.6), (34.969, 1.358), (9.979, 0.547)),
        1: ((289.754, 9.941), (412.888, 10.64), (246.703, 11.323), (338.101, 15.018), (436.431, 23.992), (244.283, 12.67), (85.988, 4.942)),
    },
    "EbayesThresh": {
        3: ((21.705, 0.226), (24.876, 0.238), (10.397, 0.158), (11.193, 0.188), (9.024, 0.186), (6.07, 0.146), (1.306, 0.033)),
        1: ((93.603, 1.065), (148.095, 1.559), (57.493, 0.901), (70.32, 1.391), (53.354, 1.448), (38.039, 0.859), (8.226, 0.235)),
    },
    "TI threshold": {
        3: ((30.116, 0.416), (27.454, 0.374), (10.932, 0.187), (10.645, 0.188), (8.785, 0.167), (6.563, 0.152), (1.344, 0.036)),
        1: ((150.681, 2.235), (239.384, 3.36), (67.993, 1.167), (79.223, 1.695), (63.19, 1.428), (39.918, 1.074), (8.173, 0.234)),
    },
    "smash": {
        3: ((22.355, 0.244), (22.112, 0.234), (9.106, 0.151), (9.489, 0.15), (7.843, 0.15), (5.681, 0.148), (1.089, 0.027)),
        1: ((96.621, 1.109), (153.624, 1.755), (53.162, 0.924), (56.943, 1.161), (46.205, 1.324), (34.698, 0.823), (7.072, 0.176)),
    },
}  # fmt: skip
"""10⁴ Σ(y - f)²/Σf² in the mean over 100 seeds, and its standard error: by method, ratio of the standard deviations of
signal and noise, and signal. JMLR 22(93) 2021, from the raw results beside the paper (stephenslab/smash-paper,
output/dscr.RData). Symmlet 8, 1024 samples. "SURE" thresholds hard there, and keeps what is above the threshold alone.
"""

FOUR = ("Blocks", "Bumps", "HeaviSine", "Doppler")
BASELINE: dict[str, tuple[float, float, float, float]] = {
    "universal soft": (0.957, 1.077, 0.319, 0.557),
    "universal hard": (0.573, 0.583, 0.253, 0.341),
    "minimax soft": (0.684, 0.763, 0.262, 0.407),
    "minimax hard": (0.525, 0.554, 0.395, 0.426),
    "SURE soft": (0.481, 0.513, 0.247, 0.336),
    "hybrid SURE soft": (0.569, 0.537, 0.256, 0.378),
    "FDR hard": (0.474, 0.508, 0.235, 0.313),
    "FDR hard, global": (0.497, 0.533, 0.253, 0.323),
    "BayesShrink soft": (0.514, 0.590, 0.248, 0.394),
    "BlockJS": (0.637, 0.599, 0.292, 0.286),
    "NeighBlock": (0.542, 0.490, 0.265, 0.270),
    "EB Laplace median": (0.454, 0.487, 0.227, 0.305),
    "TI universal hard": (0.374, 0.384, 0.199, 0.229),
    "TI FDR hard": (0.355, 0.376, 0.192, 0.220),
    "TI EB median": (0.372, 0.394, 0.196, 0.231),
    "TI SURE soft": (0.428, 0.441, 0.216, 0.279),
    "TI BayesShrink soft": (0.478, 0.539, 0.229, 0.367),
}  # fmt: skip
"""Root mean square error over σ = 1 of Donoho and Johnstone's four at sd(f)/σ = 7, 2048 samples, sym8, 6 levels, 50
draws; computed before this library with NumPy and PyWavelets alone. "minimax hard" applies the threshold for soft.
"""
FEWER, DRAWS = ("TI FDR hard", "TI EB median", "TI SURE soft", "TI BayesShrink soft"), 30
"""Rows of it that were computed from the first 30 draws."""
BEST = "TI FDR hard"
SPINS = {1: (0.575, 0.585, 0.252, 0.336), 2: (0.511, 0.514, 0.247, 0.300), 4: (0.450, 0.460, 0.237, 0.260),
         8: (0.405, 0.421, 0.226, 0.238), 16: (0.381, 0.403, 0.214, 0.227), 32: (0.371, 0.388, 0.200, 0.224)}  # fmt: skip
"""Of "universal hard", the mean over so many shifts; 30 draws."""
