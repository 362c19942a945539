"""Arrays: denoising of traces and panels, transforms, threshold functions, quality measures."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np

from .inputs import MODES, NAMED, RESIDUAL, RULES, SCOPES, SHRINKS, TRANSFORMS, on_device, traces, with_gaps
from .running import Cases, area, sweep


@area
def denoise(backend: str) -> Cases:
    """Traces, with every option."""
    import pywt

    import wavefilt

    run = partial(wavefilt.denoise, backend=backend)
    four = partial(run, level=4, wavelet="db4")
    both = {d: traces(dtype=d) for d in ("f4", "f8")}
    x = traces()
    yield from sweep("rule", four, x=both, rule=RULES, transform=TRANSFORMS, scope=SCOPES)
    kinds = ["c8", "c16", "f2", ">f4", ">f8", "g", "i1", "i2", "i4", "i8", "u1", "u4", "?"]
    yield from sweep("dtype", four, x={d: traces(dtype=d) for d in kinds}, rule=RULES)
    yield from sweep("shrink", four, x=both | {"c8": traces((2, 300), "c8")}, rule=RULES, shrink=SHRINKS[1:])
    lengths = {f"{n}-f8": traces((2, n)) for n in (1, 2, 15, 16, 17, 31, 64, 101, 256)}
    lengths |= {f"{n}-f4": traces((2, n), "f4") for n in (31, 101, 256)}
    wavelets = ["haar", "db4", "db8", "bior2.4", "coif3"]
    universal = partial(run, rule="universal")
    yield from sweep("mode", universal, x=lengths, mode=MODES, wavelet=wavelets, transform=TRANSFORMS)
    yield from sweep("wavelet", partial(run, rule="universal"), x=both, wavelet=pywt.wavelist(kind="discrete"))
    taps = pywt.Wavelet("sym4")
    own = type("Bank", (), {n: list(getattr(taps, n)) for n in ("dec_lo", "dec_hi", "rec_lo", "rec_hi")})()
    yield from sweep("wavelet", run, x=both, wavelet={"pywt": taps, "object": own})
    sigmas = ["level", "global", 7.0, 0.0, ("window", 10, 200), ("window", 0, 12)]
    yield from sweep("sigma", four, x={"f4": both["f4"]}, sigma=sigmas, rule=RULES, scope=SCOPES, transform=TRANSFORMS)
    yield from sweep("keep", run, x=both, keep=[1, 2, 9], level=[None, 0, 1, 3, 5], transform=TRANSFORMS)
    odd = {"odd": traces((2, 101))}
    rules = ["bayes", "blockjs", 7.5]
    yield from sweep("spins", run, x=both | odd, spins=[2, 5], rule=rules, mode=MODES, level=[None, 2])
    cube = traces((4, 5, 150))
    cubes = {"3d": cube, "fortran": np.asfortranarray(cube), "reversed": cube[::-1, :, ::-1]}
    along = partial(sweep, "axis", run, x=cubes, axis=[0, 1, 2, -2], wavelet=["haar", "db4"])
    yield from along(scope=SCOPES, **{RESIDUAL: [False, True]})
    gapped = with_gaps("f4") | with_gaps() | {"masked-i4": with_gaps()["masked-f8"].astype("i4")}
    gapped["complex"] = np.where(np.isnan(gapped["runs-f8"]), np.nan, traces((5, 400), "c16"))
    short = partial(run, wavelet="db2")
    yield from sweep("gaps", short, x=gapped, rule=[*NAMED, 7.5], scope=SCOPES)
    yield from sweep("gaps/modwt", short, x=gapped, rule=["bayes", "sure", 7.5], scope=SCOPES, transform=["modwt"])
    yield from sweep("gaps/noise", run, x=gapped, sigma=["global", 7.0], **{RESIDUAL: [False, True]}, scope=SCOPES)
    js = partial(run, rule="js", level=3, wavelet="db4")
    yield from sweep("js", js, x=both | {"c8": traces(dtype="c8")}, mode=MODES, transform=TRANSFORMS, keep=[0, 1])
    yield from sweep("gaps/js", js, x=gapped, sigma=["level", ("window", 0, 90)], transform=TRANSFORMS, scope=SCOPES)
    yield from sweep("detrend", run, x=both | gapped, detrend=["mean", "line"], blend=[0.0, 0.25], rule=["bayes", "js"])
    yield from sweep("gaps/spins", run, x=gapped, spins=[3], mode=["symmetric", "periodization"], level=[2])
    forms = {"list": x.tolist(), "rows": list(x), "masked": list(gapped["masked-f8"]), "empty": x[:0], "scalar": 3.0}
    forms |= {"ragged": [x[0], x[1, :50]], "1d": x[0], "strided": x[:, ::2], "no-samples": x[:, :0]}
    yield from sweep("form", run, x=forms, **{RESIDUAL: [False, True]})
    large = {f"{d}-{shape[0]}": traces(shape, d) for d in ("f4", "f8") for shape in ((200, 2000), (1, 1 << 18))}
    yield from sweep("large", run, x=large, rule=[*NAMED, 7.5], scope=SCOPES)
    yield from sweep("large/modwt", partial(run, transform="modwt", level=3), x=large, rule=["bayes"])
    yield "backend/object", partial(wavefilt.denoise, x, backend=wavefilt.backends.get(backend))
    if backend == "cuda":
        for kind, send in on_device().items():
            for rule, d in itertools.product(NAMED, both):
                yield f"device/{kind}/{rule}/{d}", lambda send=send, rule=rule, d=d: run(send(both[d]), rule=rule)


@area
def sections(backend: str) -> Cases:
    """Denoising in two dimensions."""
    import wavefilt

    run = partial(wavefilt.denoise, backend=backend)
    plane = partial(run, axes=(-2, -1))
    shapes = (33, 40), (64, 64), (17, 150), (2, 37, 50), (15, 15), (1, 90)
    planes = {f"{shape}-{d}": traces(shape, d) for d in ("f4", "f8") for shape in shapes}
    yield from sweep("mode", plane, x=planes, mode=MODES, wavelet=["haar", "db4", "bior2.4"])
    both = {d: traces((2, 49, 64), d) for d in ("f4", "f8", "c8", "i2")}
    both["gaps"] = with_gaps()["runs-f8"]
    four = partial(plane, wavelet="db2", level=4)
    yield from sweep("rule", four, x=both, rule=RULES)
    yield from sweep("shrink", four, x={"f8": both["f8"][0]}, rule=RULES, shrink=SHRINKS[1:])
    noise = partial(sweep, "sigma", plane, x=both, wavelet=["db2"], sigma=["level", "global", 7.0, ("window", 0, 20)])
    yield from noise(rule=["bayes", "sure", "universal"], scope=SCOPES, **{RESIDUAL: [False, True]})
    yield from sweep("level", plane, x=both, wavelet=["db2", "db8"], level=[None, 0, 2, 9], keep=[0, 1])
    cube = {"cube": traces((20, 3, 40)), "fortran": np.asfortranarray(traces((20, 3, 40)))}
    axes = [(0, 2), (2, 0), (-1, -3), (1, 2), (0, 0), (0, 5), (1,)]
    yield from sweep("axes", run, x=cube, wavelet=["haar"], axes=axes)
    yield from sweep("large", plane, x={d: traces((300, 700), d) for d in ("f4", "f8")}, rule=["bayes", "sure", "fdr"])


@area
def transforms(backend: str) -> Cases:
    """Forward and back, of one and two axes, with and without decimation."""
    import wavefilt

    def decimated(x: Any, wavelet: Any, mode: Any, level: Any, axis: int = -1) -> Any:
        c = wavefilt.wavedec(x, wavelet, mode, level, axis, backend=backend)
        back = partial(wavefilt.waverec, wavelet=wavelet, mode=mode, axis=axis, backend=backend)
        return c, back(c), back([c[0], *[None] * (len(c) - 1)]) if len(c) > 1 else None

    def single(x: Any, wavelet: Any, mode: Any, axis: int = -1) -> Any:
        a, d = wavefilt.dwt(x, wavelet, mode, axis, backend=backend)
        back = partial(wavefilt.idwt, wavelet=wavelet, mode=mode, axis=axis, backend=backend)
        return a, d, back(a, d), back(None, d), back(a, None)

    def overlapping(x: Any, wavelet: Any, mode: Any, level: Any, axis: int = -1) -> Any:
        c = wavefilt.modwt(x, wavelet, level, mode, axis, backend=backend)
        return c, wavefilt.imodwt(c, wavelet, mode, axis, backend=backend)

    def stationary(x: Any, wavelet: Any, level: Any, norm: bool, trim: bool, axis: int = -1, start: int = 0) -> Any:
        c = wavefilt.swt(x, wavelet, level, start, axis, trim, norm, backend=backend)
        return c, None if start else wavefilt.iswt(c, wavelet, norm, axis, backend=backend)

    def plane(x: Any, wavelet: Any, mode: Any, level: Any = None, axes: Any = (-2, -1)) -> Any:
        c = wavefilt.wavedec2(x, wavelet, mode, level, axes, backend=backend)
        return c, wavefilt.waverec2(c, wavelet, mode, axes, backend=backend)

    lengths = {n: traces((2, n)) for n in (1, 2, 7, 16, 33, 64, 101)} | {"50-f4": traces((2, 50), "f4")}
    wavelets = ["haar", "db4", "db8", "sym5", "bior2.4", "rbio3.1", "dmey"]
    kinds = {d: traces((3, 64), d) for d in ("f4", "f8", "c8", "c16", "f2", "i2", "u1", "i8", "?", ">f4", "g")}
    cube = {d: traces((24, 3, 40), d) for d in ("f4", "f8")} | {"fortran": np.asfortranarray(traces((24, 3, 40)))}
    yield from sweep("wavedec", decimated, x=lengths, wavelet=wavelets, mode=MODES, level=[None, 1, 3])
    yield from sweep("wavedec/dtype", decimated, x=kinds, wavelet=["db2"], mode=MODES, level=[2])
    yield from sweep("wavedec/axis", decimated, x=cube, wavelet=["db2"], mode=[0, "reflect"], level=[0, 2], axis=[0, 1])
    yield from sweep("dwt", single, x=lengths | kinds, wavelet=wavelets[:4], mode=MODES)
    yield from sweep("dwt/axis", single, x=cube, wavelet=["db2"], mode=["zero"], axis=[0, 1, -1])
    yield from sweep("modwt", overlapping, x=lengths, wavelet=wavelets[:3], mode=MODES, level=[None, 1, 3])
    yield from sweep("modwt/axis", overlapping, x=cube | kinds, wavelet=["db2"], mode=MODES, level=[2], axis=[0, -1])
    even, yes_no = {n: traces((2, n)) for n in (16, 64, 96)}, [False, True]
    yield from sweep("swt", stationary, x=even, wavelet=wavelets[:5], level=[None, 1, 3], norm=yes_no, trim=yes_no)
    short = partial(stationary, wavelet="db2", level=2)
    yield from sweep("swt/dtype", short, x=kinds, norm=yes_no, trim=yes_no, start=[0, 1])
    yield from sweep("swt/axis", short, x=cube, norm=[True], trim=yes_no, axis=[0, 2])
    planes = {str(s): traces(s) for s in ((33, 40), (8, 9), (2, 21, 16), (1, 5))} | kinds
    yield from sweep("wavedec2", plane, x=planes, wavelet=wavelets[:3], mode=MODES, level=[None, 1, 2])
    yield from sweep("wavedec2/pairs", plane, x=planes, wavelet=[("db2", "haar")], mode=[("zero", "periodization")])
    yield from sweep("wavedec2/axes", plane, x=cube, wavelet=["haar"], mode=["smooth"], axes=[(0, 1), (2, 0), (0, -1)])


@area
def thresholds() -> Cases:
    """Threshold functions of arrays."""
    import wavefilt

    data = {d: traces((2, 40), d) for d in ("f4", "f8", "c8", "c16", "i4", "f2")}
    data["nan"] = np.array([np.nan, 0, np.inf])
    modes = ["soft", "hard", "garrote", "garotte", "greater", "less", "firm", "sfot"]
    values = [0, 5, 20.5, np.inf, (5, 20), (5, 5), (0, np.inf), -1]
    yield from sweep("threshold", wavefilt.threshold, data=data, value=values, mode=modes, substitute=[0, 1.5])
    yield from sweep("firm", wavefilt.threshold_firm, data=data, value_low=[0, 5], value_high=[0, 5, 20, np.inf])


@area
def quality() -> Cases:
    """Measures of how well it went."""
    from wavefilt import quality

    shape = 3, 200
    clean = {"real": traces(shape), "one": traces(200), "complex": traces(shape, "c16"), "flat": np.ones(shape)}
    other = {"noisy": traces(shape, seed=8), "f4": traces(shape, "f4", 9), "flat": np.ones(shape), "short": np.ones(9)}
    for name in ("snr", "rmse"):
        call = getattr(quality, name)
        yield from ((f"{name}/{a}/{b}", partial(call, clean[a], other[b])) for a in clean for b in other)
    late = {f"{s}-{d}": np.roll(traces((2, 200), d), s, -1) for s in (0, 3, -40) for d in ("f8", "c8")}
    shift = partial(quality.arrival_shift, traces((2, 200)))
    yield from sweep("shift", shift, after=late, start=[0, 50, -1], stop=[52, 150, 300])
