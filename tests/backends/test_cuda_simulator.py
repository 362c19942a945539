"""Every kernel of the GPU backend in numba's CUDA simulator, on small sizes, against the reference.

The simulator is chosen before numba is imported, so these tests run in a process of their own.
"""

from __future__ import annotations

import numpy as np
import pytest
import pywt

import wavefilt
from tests.support.simulation import inside
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DWT
from wavefilt.vocabulary import MODES


@pytest.fixture(scope="module")
def backend():
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.statistics import selection, sorting

    selection.WHOLE, selection.CHUNK, selection.SAMPLE, selection.STAGE = 250, 128, 256, 32
    sorting.SPAN = 32
    return Cuda(options=Options(tile=128, threads=8, select=8, scan=8, row=8))


@pytest.fixture(scope="module")
def reference():
    from wavefilt.backends.reference.backend import PyWavelets

    return PyWavelets()


def _traces(rows, n, dtype="float64"):
    return np.random.default_rng(n).standard_normal((rows, n)).astype(dtype)


@inside
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("wavelet", "rows", "n", "level"), [("haar", 2, 301, 3), ("db3", 1, 300, 2)])
def test_transforms(backend, reference, mode, wavelet, rows, n, level):
    """Both ends, interior tiles, several launches; every mode."""
    bank, x = pywt.Wavelet(wavelet), _traces(rows, n)
    ours, theirs = (b.decompose(x, DWT.analysis(bank, mode, level)) for b in (backend, reference))
    for a, b in zip(ours.coefficients, theirs.coefficients, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)
    shrinkage = Shrinkage("soft", np.full((level, rows), 0.4))
    np.testing.assert_allclose(
        backend.reconstruct(ours, shrinkage), reference.reconstruct(theirs, shrinkage), atol=1e-11
    )


@inside
def test_filter_longer_than_the_tile(backend, reference):
    bank, x = pywt.Wavelet("coif17"), _traces(1, 257)
    ours, theirs = (b.decompose(x, DWT.analysis(bank, "symmetric", 1)) for b in (backend, reference))
    for a, b in zip(ours.coefficients, theirs.coefficients, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)
    np.testing.assert_allclose(backend.reconstruct(theirs), x, atol=1e-9)


@inside
@pytest.mark.parametrize("function", ["hard", "garrote", "firm"])
def test_threshold_functions(backend, reference, function):
    bank, x = pywt.Wavelet("db2"), _traces(2, 150)
    shrinkage = Shrinkage(function, np.array([[0.5, 0.0], [0.2, 1.0]]))
    ours = backend.reconstruct(backend.decompose(x, DWT.analysis(bank, "symmetric", 2)), shrinkage)
    theirs = reference.reconstruct(reference.decompose(x, DWT.analysis(bank, "symmetric", 2)), shrinkage)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@inside
@pytest.mark.parametrize(("rows", "n"), [(2, 420), (1, 1101)])
@pytest.mark.parametrize("scope", ["trace", "record"])
def test_statistics(backend, rows, n, scope):
    """Levels in one block and in many, a sampled window and the widest, odd and even counts."""
    pyramid = backend.decompose(_traces(rows, n, "float32"), DWT.analysis(pywt.Wavelet("haar"), "symmetric", 2))
    details = [d.astype(np.float64) for d in pyramid.coefficients[:0:-1]]
    groups = [d if scope == "trace" else d.reshape(1, -1) for d in details]
    found = backend.statistics([pyramid], scope)
    assert np.array_equal(found.median_abs([1, 2]), [np.median(np.abs(d), axis=1) for d in groups])
    np.testing.assert_allclose(found.mean_square(), [np.mean(d**2, axis=1) for d in groups], rtol=1e-13)


@inside
def test_equal_values_need_every_pass(backend):
    x = np.repeat(np.float32([1, 3, 1, 1]), 200)[None]
    pyramid = backend.decompose(x, DWT.analysis(pywt.Wavelet("haar"), "zero", 1))
    detail = pyramid.coefficients[1]
    assert backend.statistics([pyramid], "trace").median_abs([1])[0, 0] == np.median(np.abs(detail))


@inside
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_searched_by_a_block_each(dtype):
    """Longer than what a block lists: by the window of a sample, or where that misses or holds too many by all values.

    The sample is drawn all over the row; spikes at its places alone make the window miss.
    """
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.backends.cuda.statistics import short_rows
    from wavefilt.backends.cuda.statistics.layout import DetailLayout

    n, room, drawn, rng = 1101, 400, 64, np.random.default_rng(2)
    x = rng.standard_normal((5, n)).astype(dtype)
    x[1, ::2] = -3  # half of all values are equal
    for i in range(drawn):
        x[2, i * n // drawn + ((((i * 2654435761) & 0xFFFFFFFF) * (n // drawn)) >> 32)] += 100
    x[3] = np.arange(n) % 7
    lengths = [n, n - 1, room, room // 2 + 1]
    flat = np.zeros((5, 1104), dtype)
    flat[:, :n] = x
    layout = DetailLayout(cuda.to_device(flat.ravel()), [(0, 1104, length, 5) for length in lengths])
    middle, energy = cuda.device_array(2 * len(lengths) * 5, dtype), cuda.device_array(len(lengths) * 5, np.float64)
    keys = middle.view(layout.keys.dtype)
    kernel = short_rows.whole(dtype, 8, room, drawn)[(len(lengths), 5, 1), 8]
    kernel(*layout.arguments, 0, len(lengths) - 1, True, keys, energy)
    magnitudes = [np.sort(np.abs(x[:, :length])) for length in lengths]
    found = middle.copy_to_host().reshape(len(lengths), 5, 2)
    for own, values in zip(found[:-1], magnitudes, strict=False):
        count = values.shape[1]
        assert np.array_equal(own, values[:, [(count - 1) // 2, count // 2]])
    squares = [(values.astype(np.float64) ** 2).sum(axis=1) for values in magnitudes]
    np.testing.assert_allclose(energy.copy_to_host().reshape(len(lengths), 5), squares, rtol=1e-13)


@inside
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("listing", [True, False])
@pytest.mark.parametrize("case", ["few", "none", "equal", "in one place", "not numbers"])
def test_pass_over_all_values(dtype, listing, case):
    """Counts by bin, of values below and the list are those of the window, whether the stage has room or not."""
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.backends.cuda.statistics import scanning
    from wavefilt.backends.cuda.statistics import search_window as window

    n, pitch, threads, stage, parts = 1610, 1664, 8, 48, 2  # the last iteration of a block is short, with a rest of two
    x = np.random.default_rng(3).standard_normal(n).astype(dtype)
    integer, shift = np.dtype(f"i{x.itemsize}"), 9 if dtype == "float32" else 38  # about 5 % are in the window
    low = int(np.array(0.6, dtype).view(integer))
    bottom, top = np.array([low, low + (window.BINS << shift) - 1], integer).view(dtype)
    if case == "none":
        x[(np.abs(x) >= bottom) & (np.abs(x) <= top)] = 0
    elif case == "equal":
        x[:] = np.where(np.arange(n) % 2, bottom, -bottom)
    elif case == "in one place":
        x[300:390] = top
    elif case == "not numbers":
        x[::3], x[1::3] = np.nan, -np.inf
        x.view(integer)[3::6] |= np.iinfo(integer).min  # NaN with a sign
    room = window.room(pitch)
    flat = np.zeros(pitch + room, dtype)
    flat[:n] = x
    details = cuda.to_device(flat)
    keys = details.view(integer)
    state = np.zeros(window.FIELDS, np.int64)
    state[[window.LOW, window.SHIFT]] = low, shift
    edges = cuda.to_device(np.array([bottom, top]))
    state, counts, partial = map(cuda.to_device, (state, np.zeros(window.BINS, np.int64), np.zeros(parts)))
    chunk, bands = 1024, np.array([0, pitch, n], np.int64)
    scan = scanning.scan(dtype, stage, threads)[(parts, 1, 1), threads]
    how = 1, True, listing, True
    where = details, keys, bands, pitch, 1, 1, chunk, how, np.array([n]), state, counts
    scan(*where, edges, edges.view(integer), edges.view(integer), partial, np.zeros(1))
    state, magnitudes = state.copy_to_host(), np.abs(x)
    inside = np.sort(magnitudes[(magnitudes >= bottom) & (magnitudes <= top)])
    bins = (inside.view(integer) - low) >> shift
    assert np.array_equal(counts.copy_to_host(), np.bincount(bins, minlength=window.BINS))
    assert state[window.BELOW] == np.sum(magnitudes < bottom)
    squares = [np.sum(part.astype(np.float64) ** 2) for part in (x[:chunk], x[chunk:])]
    np.testing.assert_allclose(partial.copy_to_host(), squares, rtol=1e-13)
    if not listing:
        assert state[window.LISTED] == 0
    elif case in ("equal", "in one place"):
        assert state[window.LISTED] > room
    else:
        assert state[window.LISTED] == len(inside) <= room
        assert np.array_equal(np.sort(details.copy_to_host()[pitch : pitch + len(inside)]), inside)
        assert (len(inside) == 0) == (case == "none")


@inside
@pytest.mark.parametrize("rule", ["universal", "bayes", "sure", 0.3])
def test_denoise(backend, rule):
    x, method = _traces(2, 300), Method(wavelet="db2", level=2, rule=rule)
    y, measured = backend.denoise(x, method, 2, report=True)
    expected = wavefilt.denoise(x, "db2", level=2, rule=rule, backend="pywavelets")
    np.testing.assert_allclose(y, expected, atol=1e-10)
    assert measured.thresholds.shape == (2, 2)


@inside
@pytest.mark.parametrize(
    ("sample", "rows", "n", "level", "tile"),
    [
        (1 << 14, 1, 8902, 2, 128),
        (1 << 14, 1, 8902, 1, 128),
        (1 << 14, 1, 8902, 4, 1024),  # blocks list before the coarsest level
        (256, 2, 903, 2, 128),
        (256, 1, 1101, 2, 128),
    ],
)
def test_median_searched_by_the_forward_transform(backend, monkeypatch, sample, rows, n, level, tile):
    """One level's noise alone is wanted: the forward kernel counts and lists, from windows drawn before it.

    A small sample makes windows wide, and lists that are too long: the search begins again without them.
    """
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.statistics import selection

    monkeypatch.setattr(selection, "SAMPLE", sample)
    threads = 16 if sample > 256 else 4  # not those of the kernels that were made for another sample
    backend = Cuda(options=Options(tile=tile, threads=8, select=threads, scan=threads, row=8))
    x, wavelet = _traces(rows, n), "db2"
    options = {"level": level, "rule": "universal", "sigma": "global"}
    y, measured = backend.denoise(x, Method(wavelet=wavelet, **options), level)
    assert measured is None
    ((plan,),) = backend._plans._idle.values()
    assert plan.fused == [level]
    (denoiser,) = plan._kept.values()
    assert denoiser.quick == (sample > 256)  # one pass was enough
    np.testing.assert_allclose(y, wavefilt.denoise(x, wavelet, **options, backend="pywavelets"), atol=1e-10)


@inside
@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
@pytest.mark.parametrize(("n", "tile", "level", "small"), [(700, 256, 6, True), (3000, 256, 6, False)])
def test_coarse_levels_of_many_rows_by_small_tiles(monkeypatch, n, tile, level, small, mode):
    """The same bits as by whole tiles, where the rows are short enough."""
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.dwt import tiling

    x, method, found = _traces(3, n), Method(wavelet="db2", level=level, mode=mode, rule="universal"), []
    for many in (4, 1):
        monkeypatch.setattr(tiling, "MANY_ROWS", many)
        backend = Cuda(options=Options(tile=tile, threads=8, select=8, scan=8, row=8))
        y, _ = backend.denoise(x, method, level)
        ((plan,),) = backend._plans._idle.values()
        found.append((y, [one.tile for one, _ in plan._compiled_for]))
    (first, whole), (second, tiles) = found
    assert (set(whole), tiles != whole) == ({tile}, small)
    assert np.array_equal(first, second)


@inside
@pytest.mark.filterwarnings("ignore:overflow")  # the last bits of the widest window
@pytest.mark.parametrize("n", [1100, 1101])
@pytest.mark.parametrize("settling", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lists_of_a_forward_transform(monkeypatch, dtype, settling, n):
    """What a forward transform leaves of rows of every kind; with a pass over the lists alone in between and without.

    Each row has values, its window (the least and the shift) and whether its list is too long. The searches that end
    are told, and the others are made anew.
    """
    from wavefilt.backends.cuda.options import Options
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.backends.cuda.statistics import search_window as window
    from wavefilt.backends.cuda.statistics import selection
    from wavefilt.backends.cuda.statistics.layout import DetailLayout

    key, rng = np.dtype(f"i{np.dtype(dtype).itemsize}"), np.random.default_rng(3)
    one, above = np.array([1, 1.5], dtype).view(key).tolist()
    shift = np.finfo(dtype).nmant - 12  # of a window from 1 to 1.5
    middle = n // 2 - n // 20 + np.arange(n // 10)  # ranks of the values in the window

    def placed(inside):
        """Values of which those in the middle have such bits."""
        values = np.concatenate([np.full(n, 0.5, dtype)[: middle.min()], np.full(n, 2, dtype)[: n - middle.max() - 1]])
        return rng.permutation(np.concatenate([values, np.array(inside).astype(key).view(dtype)]))

    count, lower = len(middle), n // 2 - middle.min() + n % 2  # of the values in the window, and up to the middle
    rows = {
        "several bins": (placed(one + (np.arange(count) << (shift + 1))), one, shift, False, True),
        "two bins": (placed([one] * lower + [one + (900 << shift)] * (count - lower)), one, shift, False, True),
        "equal": (placed([one] * count), one, 0, False, True),
        "too many in a bin": (placed(one + np.arange(count) % 90), one, shift, False, False),
        "single values": (placed(one + np.arange(count)), one, 0, False, True),
        "the upper is not listed": (placed([one] * lower + [above] * (count - lower)), one, 0, False, True),
        "below the window": (placed([one] * lower + [above] * (count - lower)), above, 0, False, False),
        "above the window": (placed([one] * 10 + [above] * (count - 10)), one, 0, False, False),
        "nothing listed": (placed([one] * count), one + 1, 0, False, False),
        "not all listed": (placed(one + np.arange(count)), one, 0, True, False),
        "not finite": (np.full(n, np.nan, dtype), one, shift, False, False),
    }
    pitch, many = n + 3 & ~3, len(rows)
    ends, longest = many * pitch, pitch >> 5 << 2
    flat = np.zeros(ends + ends // 8 + 8, dtype)
    with monkeypatch.context() as patched:
        patched.setattr(selection, "WHOLE", 100)
        patched.setattr(selection, "CLOSE", 64)
        if settling:
            patched.setattr(selection, "listed", lambda *_: 64 * 1024)
        layout = DetailLayout(cuda.to_device(flat), [(0, pitch, n, many)], ends, 1)
        found = selection.Selection([layout], Options(select=8, scan=8), 1, False)
        state, counts, _ = (array.copy_to_host() for array in found.on_the_way)
        state, counts = state.reshape(many, -1), counts.reshape(many, -1)
        for i, (values, low, shift, cut, _) in enumerate(rows.values()):
            flat[i * pitch : i * pitch + n] = values * rng.choice([-1, 1], n)
            bits = values.view(key).astype(np.int64)
            own = bits[(bits >= low) & (bits < low + (window.BINS << shift))]
            assert len(own) <= longest
            start = ends + (i * pitch >> 5 << 2)
            flat[start : start + len(own)] = own.astype(key).view(dtype)
            listed = longest + 1 if cut else len(own)
            for field, value in {
                window.LOW: low,
                window.SHIFT: shift,
                window.BELOW: np.count_nonzero(bits < low),
                window.LISTED: listed,
                window.ABOVE: window.magnitudes(key.itemsize),
            }.items():
                state[i, field] = value
            counts[i] = np.bincount((own[: len(own) // 2 if cut else None] - low) >> shift, minlength=window.BINS)
        layout.array.copy_to_device(flat)
        for array, host in zip(found.on_the_way, (state, counts), strict=False):
            array.copy_to_device(host.ravel())
        found.settle(cuda.stream())
    ended = found.state.copy_to_host().reshape(many, -1)[:, window.SHIFT] == window.DONE
    expected = {name: ends for name, (*_, ends) in rows.items()}
    expected["too many in a bin"] = settling and dtype == "float32"  # whose bins are single values then
    assert dict(zip(rows, ended, strict=True)) == expected
    medians = found.middle.copy_to_host().view(key).reshape(many, 2)
    for own, (values, *_) in zip(medians, rows.values(), strict=True):
        bits = np.sort(values.view(key))
        assert own.tolist() == [bits[(n - 1) // 2], bits[n // 2]]


@inside
def test_counts_of_a_forward_transform(backend):
    """Values are counted in the bins in which they are listed, at the ends of a row too, after those of another run."""
    from wavefilt.backends.cuda.dwt.plan import DwtPlan
    from wavefilt.backends.cuda.plan import Beside, Shape
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.backends.cuda.statistics import search_window as window
    from wavefilt.backends.cuda.statistics import selection

    x, stream = _traces(2, 903), cuda.stream()
    plan = DwtPlan(Shape.of(DWT.analysis(pywt.Wavelet("db2"), "symmetric", 2), "float64", 2, (903,)), backend._options)
    found, flat = selection.Selection([plan.layout], plan.options, 1, False), cuda.to_device(x.ravel())
    for _ in range(2):  # the second draws after a run that was not ended
        found.draw(flat, 903, plan.high_pass, stream)
        plan.forward(flat, stream, Beside(search=found))
    state, counts, edges = (array.copy_to_host().reshape(2, -1) for array in found.on_the_way)
    samples = found._drawn.copy_to_host()[: 2 * 32].reshape(2, 32)
    assert not found._coarse.copy_to_host().any()
    band, details = plan.layout.bands[0], plan.details.copy_to_host()
    for row in range(2):
        bits = np.abs(details[row * band.pitch :][: band.length]).view(np.int64)
        low, shift = state[row, window.LOW], state[row, window.SHIFT]
        last = edges[row, 1:].view(np.int64)[0]
        sample = np.sort(samples[row] & window.magnitudes(8))  # the window reaches 4.5 deviations to both sides
        assert low <= sample[16 - 13] <= sample[16 + 13] <= last
        assert state[row, window.BELOW] == np.count_nonzero(bits < low)
        own = bits[(bits >= low) & (bits <= last)]
        assert state[row, window.LISTED] == len(own) > 0
        assert np.array_equal(counts[row], np.bincount((own - low) >> shift, minlength=window.BINS))


@inside
def test_not_finite_and_unchanged(backend):
    x = _traces(2, 140)
    y, _ = backend.denoise(x, Method(level=2, wavelet="db2", rule=0.0), 2)
    assert np.array_equal(y, x)
    x[1, 70] = np.nan
    assert backend.denoise(x, Method(level=2, wavelet="db2"), 2) is None


@inside
@pytest.mark.parametrize(
    ("rule", "sigma", "scope", "rows", "mode"),
    [
        ("bayes", "level", "trace", 1, "symmetric"),
        ("sure", "level", "record", 2, "periodization"),
        ([0.3, 0.0], "global", "record", 2, "periodic"),
        ("js", "level", "trace", 1, "symmetric"),
        ("js", 0.8, "record", 2, "reflect"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chunks_when_memory_is_short(backend, monkeypatch, rule, sigma, scope, rows, mode, dtype):
    from wavefilt.backends.cuda import Cuda, chunked_rows
    from wavefilt.backends.cuda.runtime.memory import OutOfMemory

    def short(*_):
        raise OutOfMemory("none left")

    seen, decompose = [], Cuda.decompose
    monkeypatch.setattr(Cuda, "decompose", lambda self, x, *rest: seen.append(x.shape) or decompose(self, x, *rest))
    monkeypatch.setattr(Cuda, "whole", short)
    monkeypatch.setattr(chunked_rows, "BLOCKS", 2)
    monkeypatch.setattr(chunked_rows, "THREADS", 4)
    x, method = _traces(rows, 201, dtype), Method("db2", 2, mode, rule, None, sigma, scope)
    y, measured = backend.denoise(x, method, 2, report=True)
    assert len(set(seen)) == (2 if rows == 1 else 1)  # both ends of the row, what is between; or a row
    whole = run(x, method, "pywavelets", report=True)
    np.testing.assert_allclose(y, whole.samples, atol=1e-10 if dtype == "float64" else 1e-5)
    (estimate,) = whole.estimates
    for name in ("sigma", "thresholds", "power"):
        np.testing.assert_allclose(getattr(measured, name)[:2], getattr(estimate, name), rtol=1e-5)
    x[0, 100] = np.nan
    assert backend.denoise(x, method, 2) is None
    monkeypatch.setattr(Cuda, "decompose", short)
    with pytest.raises(MemoryError, match="do not fit"):
        backend.denoise(x, method, 2)
