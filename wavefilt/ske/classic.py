"""The classic model, equations (1) to (17), with nothing mended.

All formulas of the paper are lost. Comments give the number of each and how sure it is: *stated* in the text,
*implied* by its words or a worked number, or *reconstructed*, with alternatives that the text does not exclude.
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
"""r_w and r_b: of the time, this share is left by each further active warp and block (stated)."""
R_CORRECTED = {1: 0.92, 2: 0.99}
"""Both coefficients under each correction (stated)."""

FACTORS: dict[str, Callable[[float, float], tuple[float, float, float]]] = {
    "product": lambda w, b: (w * b, w * b, w * b),  # (8), (9), reconstructed: the reading that gives the paper's shape
    "separate": lambda w, b: (w, b, 1.0),  # the prose, taken literally; what hides the latency Ts it does not say
    "swapped": lambda w, b: (b, w, 1.0),
}
"""What is left of Te, Tc and Ts for w = r_w^(nw-1) and b = r_b^(nb-1)."""


@dataclass(frozen=True)
class Kernel:
    """What one thread of the critical path does and needs.

    Parameters
    ----------
    computation, communication : float
        Cycles of its instructions and of its memory accesses, the sums that `computation` and `communication` of
        `wavefilt.ske` make from counts.
    barriers : int
        k, the calls of ``__syncthreads``.
    registers, shared : int
        M1, 32-bit registers, and M2, bytes of shared memory of the thread. 0 limits nothing.
    constant, storage : int
        M3, and Ms = M4 + ... + M7: bytes of constant and of global, texture and local memory in all.
    conflict, sync : float
        alpha and beta, which multiply the cycles of communication and of barriers.

    Raises
    ------
    ValueError
        For a count below zero, or none.
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
    """The time ``Tn`` and all it is made of, in seconds, by the paper's symbols.

    ``Te``, ``Tc`` and ``Ts`` are computation, communication and synchronisation before hiding; ``nb`` and ``nw`` the
    active blocks and warps of an SM; ``limit`` what keeps nb from being larger, "grid" where there are no more
    blocks; ``turns`` the ceil(b/S) blocks an SM runs in all, ``waves`` the ceil(b/(S nb)) times all SMs are filled.
    ``warp_factor`` and ``block_factor`` are r_w^(nw-1) and r_b^(nb-1), ``factor`` is Tn/(Te + Tc + Ts).
    ``constraints`` are all that were checked.
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
    """Time of one kernel launch by the classic model.

    Parameters
    ----------
    kernel : Kernel
    device : str or Device
        One of `DEVICES`, or a description of another.
    threads, blocks : int
        t, threads of a block, and b, blocks of the grid.
    hiding : {"product", "separate", "swapped"}
        Which factor acts on what (8): both on the sum; that of the warps on computation and that of the blocks on
        communication; or the reverse.
    correction : {None, 1, 2}
        1: both coefficients are 0.92 for blocks of fewer than P/2 threads. 2: computation and communication are
        counted for all active threads at once, and both coefficients are 0.99; its times do not compare with those of
        the others.
    rw, rb : float, optional
        Hiding coefficients above 0 and up to 1, instead of 0.95 and 0.96 or those of the correction.

    Raises
    ------
    ValueError
        For an unknown word, a count below zero, a launch that breaks a constraint, which is named, or a device whose
        LD/ST units are not known.
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
            f"{device.name}: its LD/ST units per SM (L) are not known, so communication has no estimate; "
            "give them with dataclasses.replace(device, load_store=...)"
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
    """The eight constraints of the model, and the compiler's on registers, for ``blocks`` active blocks of an SM."""
    device = named(device, DEVICES)
    count("threads", threads, 1)
    return (
        *residents(device.capability, threads, kernel.registers, kernel.shared * threads, blocks),
        Constraint("MaxConstantMemory", "15", kernel.constant, device.constant, "bytes of constant memory"),
        Constraint("MaxGlobalMemory", "16", kernel.storage, device.storage, "bytes of global memory"),
    )


def threads_by_shared(device: str | Device, shared: int, mode: Literal["per_sm", "total"] = "per_sm") -> int:
    """Threads the device runs at a time where each keeps ``shared`` bytes in shared memory (17), implied.

    ``per_sm`` rounds down in each SM, since a block lies in one; ``total`` divides the shared memory of all SMs, which
    is what the paper's Table 7 prints.
    """
    device = named(device, DEVICES)
    check("mode", mode, ("per_sm", "total"))
    S, size = device.multiprocessors, device.capability.shared
    count("shared", shared, 1)
    return S * (size // shared) if mode == "per_sm" else S * size // shared


def blocks_of(grid: Shape, block: Shape) -> int:
    """Blocks that cover the grid."""
    return -(-grid[0] // block[0]) * -(-grid[1] // block[1])


def shapes(kernel: Kernel, device: str | Device, grid: Shape) -> list[Shape]:
    """Every legal block: a multiple of the warp wide, no larger than the grid needs, and within the constraints.

    Raises ValueError, naming the constraints, if even a block of one warp breaks them.
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
    """The block shape for which the classic model gives the least time: min Tn(t, b) under (10) to (16).

    Parameters
    ----------
    kernel : Kernel
    device : str or Device
    grid : (int, int)
        Width and height of the grid in threads; (n, 1) for a one-dimensional one.
    **options
        Those of `estimate`.

    Returns
    -------
    tuple of Shape and Estimate
        The shape (width, height) and its estimate. Of equal times the one with more active warps wins, then the
        smaller block.

    Raises
    ------
    ValueError
        As `estimate` does, or if no block is legal.
    """
    found = {
        shape: estimate(kernel, device, shape[0] * shape[1], blocks_of(grid, shape), **options)
        for shape in shapes(kernel, device, grid)
    }
    best = min(found, key=lambda shape: (found[shape].Tn, -found[shape].nw, found[shape].threads))
    return best, found[best]


def _ceil(amount: int, unit: int) -> int:
    return -(-amount // unit)
