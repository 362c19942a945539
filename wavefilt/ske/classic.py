"""The classic model, equations (1) to (17) of the paper, without corrections of its errors.

All formulas of the paper are lost. Comments give the number of each formula and its source: *stated* in the text,
*implied* by its words or a worked example, or *reconstructed* where the text is ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from wavefilt.vocabulary import HIDINGS, Hiding, check

from .occupancy import Constraint, amount, count, named, occupancy, refuse, residents
from .tables import DEVICES, Device

Correction = Literal[1, 2]
Shape = tuple[int, int]
"""Width and height: of a block in threads, or of the grid in threads."""

R_WARPS, R_BLOCKS = 0.95, 0.96
"""r_w and r_b: each further active warp and block reduces the time to this share (stated)."""
R_CORRECTED = {1: 0.92, 2: 0.99}
"""Value of both coefficients with each correction (stated)."""

FACTORS: dict[str, Callable[[float, float], tuple[float, float, float]]] = {
    "product": lambda w, b: (w * b, w * b, w * b),  # (8), (9), reconstructed: gives the shape that the paper claims
    "separate": lambda w, b: (w, b, 1.0),  # the literal reading; the text does not say what hides Ts
    "swapped": lambda w, b: (b, w, 1.0),
}
"""Factors of Te, Tc and Ts for w = r_w^(nw-1) and b = r_b^(nb-1)."""


@dataclass(frozen=True)
class Kernel:
    """Work and resources of one thread on the critical path.

    Parameters
    ----------
    computation, communication : float
        Cycles of instructions and of memory accesses: see `computation` and `communication` of `wavefilt.ske`.
    barriers : int
        k, the number of calls of ``__syncthreads``.
    registers, shared : int
        M1, 32-bit registers, and M2, bytes of shared memory per thread. 0 sets no limit.
    constant, storage : int
        M3, and Ms = M4 + ... + M7: bytes of constant memory, and of global, texture and local memory in total.
    conflict, sync : float
        alpha and beta, factors of the cycles of communication and of barriers.

    Raises
    ------
    ValueError
        For a negative or missing count.
    """

    computation: float
    communication: float
    barriers: int = 0
    registers: int = 0
    shared: int = 0
    constant: int = 0
    storage: int = 0
    conflict: float = 1.0
    sync: float = 1.0

    def __post_init__(self) -> None:
        for name in ("computation", "communication", "conflict", "sync"):
            amount(name, getattr(self, name))
        for name in ("barriers", "registers", "shared", "constant", "storage"):
            count(name, getattr(self, name))


@dataclass(frozen=True)
class Estimate:
    """The time ``Tn`` in seconds with its components, named as in the paper.

    ``Te``, ``Tc`` and ``Ts`` are computation, communication and synchronisation before latency hiding. ``nb`` and
    ``nw`` are the active blocks and warps of an SM; ``limit`` is the resource that limits nb, or "grid" if there are
    no more blocks. ``turns`` is ceil(b/S), the blocks that an SM executes in total, and ``waves`` is ceil(b/(S nb)).
    ``warp_factor`` and ``block_factor`` are r_w^(nw-1) and r_b^(nb-1); ``factor`` is Tn/(Te + Tc + Ts).
    ``constraints`` holds all constraints that were checked.
    """

    Tn: float
    Te: float
    Tc: float
    Ts: float
    nb: int
    nw: int
    limit: str
    turns: int
    waves: int
    warp_factor: float
    block_factor: float
    factor: float
    threads: int
    blocks: int
    constraints: tuple[Constraint, ...]


def estimate(
    kernel: Kernel,
    device: str | Device,
    threads: int,
    blocks: int,
    *,
    hiding: Hiding = "product",
    correction: Correction | None = None,
    rw: float | None = None,
    rb: float | None = None,
) -> Estimate:
    """Estimate the time of one kernel launch with the classic model.

    Parameters
    ----------
    kernel : Kernel
    device : str or Device
        A name in `DEVICES`, or a description of another device.
    threads, blocks : int
        t, threads per block, and b, blocks of the grid.
    hiding : {"product", "separate", "swapped"}
        What the factors of (8) apply to: both to the sum; warps to computation and blocks to communication; or the
        reverse.
    correction : {None, 1, 2}
        1: both coefficients are 0.92 for blocks of fewer than P/2 threads. 2: computation and communication are
        counted for all active threads at once, and both coefficients are 0.99; do not compare its times with those
        without it.
    rw, rb : float, optional
        Hiding coefficients, above 0 and at most 1. The defaults are 0.95 and 0.96, or those of the correction.

    Raises
    ------
    ValueError
        For an unknown name, a negative count, a launch that violates a constraint, which is named, or a device whose
        number of LD/ST units is not known.
    """
    device = named(device, DEVICES)
    check("hiding", hiding, HIDINGS)
    if correction not in (None, 1, 2):
        raise ValueError(f"correction={correction!r} must be 1, 2 or None")
    count("blocks", blocks, 1)
    refuse(constraints(kernel, device, threads), device.name)
    cap, T, S, P = device.capability, device.clock, device.multiprocessors, device.processors
    if (L := device.load_store) is None:
        raise ValueError(
            f"{device.name}: the number of LD/ST units per SM (L) is not known; "
            "set it with dataclasses.replace(device, load_store=...)"
        )

    turns = _ceil(blocks, S)  # 3.1, implied
    held = occupancy(cap, threads, kernel.registers, kernel.shared * threads)
    nb = min(turns, held.blocks)  # (14), implied
    nw = nb * _ceil(threads, cap.warp)  # stated
    waves = _ceil(blocks, S * nb)

    # (2), ceilings reconstructed: blocks in turns; correction 2, reconstructed: all active threads in waves
    times, lanes = (waves, nw * cap.warp) if correction == 2 else (turns, threads)
    Te = times * _ceil(lanes, P) * T * kernel.computation  # (3), implied
    Tc = kernel.conflict * times * _ceil(lanes, L) * T * kernel.communication  # (4) to (6), reconstructed
    Ts = 4 * kernel.sync * kernel.barriers * times * _ceil(lanes, cap.warp) * T  # (7), implied

    corrected = correction == 2 or (correction == 1 and 2 * threads < P)  # correction 1, stated
    warps, active = (R_CORRECTED[correction],) * 2 if correction and corrected else (R_WARPS, R_BLOCKS)
    for name, value in {"rw": rw, "rb": rb}.items():
        if value is not None and not 0 < amount(name, value) <= 1:
            raise ValueError(f"{name}={value!r} must be above 0 and at most 1")
    w, b = (warps if rw is None else rw) ** (nw - 1), (active if rb is None else rb) ** (nb - 1)  # (8), reconstructed
    of_Te, of_Tc, of_Ts = FACTORS[hiding](w, b)
    Tn = of_Te * Te + of_Tc * Tc + of_Ts * Ts  # (1), stated, and (9), reconstructed
    limit, factor = held.limit if nb == held.blocks else "grid", Tn / (Te + Tc + Ts) if Tn else 1.0
    checked = constraints(kernel, device, threads, nb)
    return Estimate(Tn, Te, Tc, Ts, nb, nw, limit, turns, waves, w, b, factor, threads, blocks, checked)


def constraints(kernel: Kernel, device: str | Device, threads: int, blocks: int = 1) -> tuple[Constraint, ...]:
    """Return the eight constraints of the model and the compiler's limit of registers, for ``blocks`` active blocks."""
    device = named(device, DEVICES)
    count("threads", threads, 1)
    return (
        *residents(device.capability, threads, kernel.registers, kernel.shared * threads, blocks),
        Constraint("MaxConstantMemory", "15", kernel.constant, device.constant, "bytes of constant memory"),
        Constraint("MaxGlobalMemory", "16", kernel.storage, device.storage, "bytes of global memory"),
    )


def threads_by_shared(device: str | Device, shared: int, mode: Literal["per_sm", "total"] = "per_sm") -> int:
    """Return the number of concurrent threads if each needs ``shared`` bytes of shared memory (17), implied.

    ``per_sm`` rounds down per SM, since a block resides on one SM; ``total`` divides the shared memory of all SMs, as
    in Table 7 of the paper.
    """
    device = named(device, DEVICES)
    check("mode", mode, ("per_sm", "total"))
    S, size = device.multiprocessors, device.capability.shared
    count("shared", shared, 1)
    return S * (size // shared) if mode == "per_sm" else S * size // shared


def blocks_of(grid: Shape, block: Shape) -> int:
    """Return the number of blocks that cover the grid."""
    return -(-grid[0] // block[0]) * -(-grid[1] // block[1])


def shapes(kernel: Kernel, device: str | Device, grid: Shape) -> list[Shape]:
    """Return all valid blocks: a multiple of the warp wide, no larger than the grid, within the constraints.

    Raises ValueError, naming the constraints, if even a block of one warp violates them.
    """
    device = named(device, DEVICES)
    width, height = (count(name, value, 1) for name, value in zip(("width", "height"), grid, strict=True))
    warp, most = device.capability.warp, device.capability.threads_per_block
    refuse(constraints(kernel, device, warp), device.name)
    return [
        (w, h)
        for w in range(warp, min(width + warp - 1, most) + 1, warp)
        for h in range(1, min(height, most // w) + 1)
        if all(c.holds for c in constraints(kernel, device, w * h))
    ]


def optimise(kernel: Kernel, device: str | Device, grid: Shape, **options: Any) -> tuple[Shape, Estimate]:
    """Return the block shape with the shortest estimated time: min Tn(t, b) under (10) to (16).

    Parameters
    ----------
    kernel : Kernel
    device : str or Device
    grid : (int, int)
        Width and height of the grid in threads; (n, 1) for a one-dimensional grid.
    **options
        Options of `estimate`.

    Returns
    -------
    tuple of Shape and Estimate
        The shape (width, height) and its estimate. Between equal times, more active warps win, then the smaller
        block.

    Raises
    ------
    ValueError
        As `estimate`, or if no block is valid.
    """
    found = {
        shape: estimate(kernel, device, shape[0] * shape[1], blocks_of(grid, shape), **options)
        for shape in shapes(kernel, device, grid)
    }
    best = min(found, key=lambda shape: (found[shape].Tn, -found[shape].nw, found[shape].threads))
    return best, found[best]


def _ceil(amount: int, unit: int) -> int:
    return -(-amount // unit)
