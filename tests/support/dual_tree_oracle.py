"""Writes ``tests/decomposition/dual_tree.npz``: coefficients by the package dtcwt 0.14, which needs NumPy below 2.

In an environment with both: ``python tests/support/dual_tree_oracle.py tests/decomposition/dual_tree.npz``. Inputs are
`samples`; lengths and shapes are those of `CASES`.
"""

import sys

import numpy as np

BIORTS = ("antonini", "legall", "near_sym_a", "near_sym_b")
QSHIFTS = ("qshift_06", "qshift_a", "qshift_b", "qshift_c", "qshift_d")
CASES = [((50,), biort, "qshift_b", 4) for biort in BIORTS]
CASES += [((64,), "near_sym_b", qshift, 3) for qshift in QSHIFTS]
CASES += [((n,), "near_sym_a", "qshift_a", 3) for n in (2, 4, 6, 34)]
CASES += [((8, 12), biort, "qshift_a", 2) for biort in BIORTS]
CASES += [((12, 10), "near_sym_b", qshift, 3) for qshift in QSHIFTS]
CASES += [(shape, "near_sym_b", "qshift_b", 3) for shape in ((1, 1), (2, 7), (5, 9), (13, 22))]
"""Shape, filters and levels."""


def samples(shape):
    """Irregular numbers between -1 and 1, without a generator that may change."""
    return np.sin(1.7 * np.arange(1, np.prod(shape) + 1) ** 2).reshape(shape)


def main(path):
    import dtcwt

    found = {}
    for place, (shape, biort, qshift, level) in enumerate(CASES):
        kind = dtcwt.Transform1d if len(shape) == 1 else dtcwt.Transform2d
        pyramid = kind(biort, qshift).forward(samples(shape), level)
        for name, c in {"low": pyramid.lowpass, **dict(enumerate(pyramid.highpasses))}.items():
            found[f"{place}_{name}"] = c[:, 0] if len(shape) == 1 else c
    np.savez_compressed(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
