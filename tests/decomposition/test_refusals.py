"""Wrong arguments of the transforms: each raises an exception of the type that PyWavelets raises, and names it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import wavefilt

X = np.sin(np.arange(24.0))
S = np.cos(np.arange(320.0)).reshape(8, 40)
D = np.ones((9, 9))

REFUSALS = [
    # one level, one axis
    ("dwt", (X, "db2", None), TypeError, "mode"),
    ("dwt", (X, "db2", 9), ValueError, "mode"),
    ("idwt", (None, None, "db2"), ValueError, "at least one"),
    ("idwt", (X[:3], X[:3], "db4"), ValueError, "too short"),
    ("idwt", ([1.0, 2.0], [1.0], "db2"), ValueError, "belong together"),
    # several levels, one axis
    ("wavedec", (X, "db99"), ValueError, "did you mean"),
    ("wavedec", (X, ""), ValueError, "unknown wavelet"),
    ("wavedec", (X, "morl"), ValueError, "continuous"),
    ("wavedec", (X, 7), TypeError, "wavelet"),
    ("wavedec", (X, "db2", "symetric"), ValueError, "'symmetric'"),
    ("wavedec", ([1.0, 2.0], "haar", "reflect", 2), ValueError, "single sample"),
    ("wavedec", ([], "db2"), ValueError, "no samples"),
    ("wavedec", (X, "db2", "zero", None, 3), ValueError, "axis"),
    ("wavedec", (["a", "b"], "db2"), TypeError, "numeric"),
    ("wavedec", ("line.sgy", "db2"), TypeError, "path"),
    ("wavedec", (np.ma.masked_greater(X, 0.5), "db2"), ValueError, "masked"),
    ("wavedec", ([X, np.ma.masked_greater(X, 0.5)], "db2"), ValueError, "masked"),
    ("waverec", ([], "db2"), ValueError, "at least one array"),
    ("waverec", ([None, None, [1.0]], "db2"), ValueError, "array"),
    ("waverec", ([X, X], "db2", ["zero"]), TypeError, "mode"),
    ("waverec", ([X[:5], X[:9]], "db2"), ValueError, r"coeffs\[0\]"),
    # two axes
    ("wavedec2", (X, "db2"), ValueError, "axis"),
    ("wavedec2", (S, "db2", "zero", None, (0, 0)), ValueError, "axis"),
    ("wavedec2", (S, "db2", "zero", None, (0, 1, 1)), ValueError, "axis"),
    ("wavedec2", (S, "db2", "zero", None, 1), TypeError, "iterable"),
    ("wavedec2", (S[:0], "db2"), ValueError, "no samples"),
    ("wavedec2", (S, "db2", "zero", -1), ValueError, "at least 0"),
    ("wavedec2", (S[:1], "db2", "reflect", 1), ValueError, "single sample"),
    ("wavedec2", (S, ("db2",) * 3), ValueError, "wavelets"),
    ("wavedec2", (S, "db2", ("zero",)), ValueError, "modes"),
    ("waverec2", ([], "db2"), ValueError, "list"),
    ("waverec2", ([None], "db2"), ValueError, "array"),
    ("waverec2", ([D, (D, D)], "db2"), ValueError, r"coeffs\[1\]"),
    ("waverec2", ([None, (None,) * 3], "db2"), ValueError, "array"),
    ("waverec2", ([D, (D, D, D[1:])], "db2"), ValueError, "level"),
    ("waverec2", ([D, (D[2:],) * 3], "db2"), ValueError, r"coeffs\[0\]"),
    # undecimated
    ("modwt", (X, "db2", 5), ValueError, "level"),
    ("modwt", (X[:0], "db2"), ValueError, "no samples"),
    ("modwt", (X, "db2", 1, "zero", 1), ValueError, "axis"),
    ("modwt", (X, "db2", 1, "symetric"), ValueError, "'symmetric'"),
    ("modwt", (X[:1], "db2", 0, "reflect"), ValueError, "single sample"),
    ("imodwt", ([], "db2"), ValueError, "array"),
    ("imodwt", ([None, None], "db2"), ValueError, "array"),
    ("imodwt", ([X[:3], X[:3]], "db2", "zero"), ValueError, "belong together"),
    ("imodwt", ([X, X[:20]], "db2"), ValueError, "belong together"),
    ("swt", (X[:7], "db2", 1), ValueError, "modwt"),
    ("swt", (X, "db2", 4), ValueError, "divide"),
    ("swt", (X, "db2", 2, 2), ValueError, "start_level"),
    ("swt", (X, "db2", 0), ValueError, "level"),
    ("iswt", ([], "db2"), ValueError, "level"),
    ("iswt", ([X] * 5, "db2"), ValueError, "divide"),
    ("iswt", ([(X, X[:12])], "db2"), ValueError, "belong together"),
    ("modwt2", (S, "haar", 4), ValueError, "at most"),
    ("modwt2", (S[:0], "haar"), ValueError, "no samples"),
    ("modwt2", (X, "haar"), ValueError, "axis"),
    ("modwt2", (S[:, :1], "haar", 0, "reflect"), ValueError, "single sample"),
    ("modwt2", (S, "haar", 1, "mirror"), ValueError, "mirror"),
    ("modwt2", (S, "haar", 1, "zero", (0, 0)), ValueError, "axis"),
    # dual tree
    ("dtcwt", (X, "near_sym_b_bp"), ValueError, "biort"),
    ("dtcwt", (X, "near_sym_b", "qshift_b_bp"), ValueError, "qshift"),
    ("dtcwt", (X, "near_sym_b", "qshift_b", -1), ValueError, "level"),
    ("dtcwt", (S[:, :0],), ValueError, "no samples"),
    ("dtcwt", (X + 1j,), ValueError, "complex"),
    # packets
    ("wavelet_packets", (X, "haar", "zero", -1), ValueError, "level"),
    ("wavelet_packets", (X, "db99"), ValueError, "wavelet"),
    ("wavelet_packets", (X, "haar", "zero", 1, 2), ValueError, "axis"),
    ("wavelet_packets", (X[:0], "haar"), ValueError, "no samples"),
    ("wavelet_packets", (X[:1], "haar", "reflect", 1), ValueError, "single sample"),
]


@pytest.mark.parametrize(("name", "arguments", "error", "word"), REFUSALS)
def test_wrong_arguments(name, arguments, error, word):
    with pytest.raises(error, match=word):
        getattr(wavefilt, name)(*arguments)


@pytest.mark.parametrize("name", ["dwt", "wavedec", "modwt", "swt", "wavelet_packets"])
def test_a_backend_that_is_not_there(name):
    with pytest.raises(ValueError, match="backend"):
        getattr(wavefilt, name)(X, "db2", backend="gpu")


@pytest.mark.parametrize(("x", "options"), [(X, {"axes": (0, 1)}), (S, {"axis": 2})])
def test_axes_of_the_dual_tree_transform(x, options):
    with pytest.raises(ValueError, match="ax"):
        wavefilt.dtcwt(x, **options)


def test_coefficients_of_the_dual_tree_transform_that_do_not_belong_together():
    found = wavefilt.dtcwt(np.ones(20), level=2)
    for wrong in ({"highpasses": found.highpasses[:1]}, {"lowpass": found.lowpass[:-1]}, {"samples": (24,)}):
        with pytest.raises(ValueError, match="not those of"):
            wavefilt.idtcwt(dataclasses.replace(found, **wrong))


@pytest.mark.parametrize(
    "change",
    [
        lambda c: [],
        lambda c: [c[0], c[1][:2], c[2]],
        lambda c: [c[0][:-1], *c[1:]],
        lambda c: [c[0], c[1], tuple(b[:, 1:] for b in c[2])],
    ],
)
def test_coefficients_of_imodwt2_that_do_not_belong_together(change):
    c = wavefilt.modwt2(np.ones((16, 20)), "db2", 2, "symmetric")
    with pytest.raises(ValueError, match=r"coeffs|array"):
        wavefilt.imodwt2(change(c), "db2", "symmetric")


EIGHT = wavefilt.wavelet_packets(np.arange(16.0), "haar", level=3)


@pytest.mark.parametrize(
    ("names", "word"),
    [
        ([], "at least one"),
        (["a", "d", "da"], "'da'"),
        (["", "a"], "'a'"),
        (["a"], "'d'"),
        (["a", "dda", "ddd"], "'da'"),
        (["d", "aa"], "'ad'"),
        (["a", "dh", "dd"], "'dh'"),
    ],
)
def test_sets_of_nodes_that_are_no_basis(names, word):
    nodes = {name: np.zeros(8 if len(name) < 2 else 4) for name in names}
    with pytest.raises(ValueError, match=word):
        wavefilt.iwavelet_packets(nodes, "haar")


@pytest.mark.parametrize(
    ("change", "options", "word"),
    [
        ({"a": np.zeros(6)}, {}, "'da'"),
        ({"da": np.zeros(3)}, {}, "'da'"),
        ({"da": np.zeros((2, 4))}, {}, "'da'"),
        ({}, {"samples": 18}, "'a'"),
        ({}, {"samples": 0}, "samples"),
        ({}, {"mode": "mirror"}, "mirror"),
        ({}, {"wavelet": "db9", "mode": "symmetric"}, "taps|coefficients"),
        ({}, {"axis": 1}, "axis"),
    ],
)
def test_nodes_that_do_not_fit(change, options, word):
    nodes = {name: EIGHT[name] for name in ("a", "da", "dd")} | change
    with pytest.raises(ValueError, match=word):
        wavefilt.iwavelet_packets(nodes, **{"wavelet": "haar", **options})


def test_names_of_nodes_that_are_not_there():
    for name in ("aaaa", "x"):
        with pytest.raises(KeyError, match=name):
            EIGHT[name]
    with pytest.raises(ValueError, match="level"):
        EIGHT.names(4)
    with pytest.raises(ValueError, match="freq"):
        EIGHT.names(2, "frequency")
    assert "level 3" in repr(EIGHT)
