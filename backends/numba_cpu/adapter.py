"""The only module that relies on parts of numba that its documentation does not promise; imported to compile alone.

They are, beside `numba.njit`, `numba.cfunc`, `numba.extending` and llvmlite, which are documented:

* the options ``_nrt``, ``no_cpython_wrapper`` and ``no_cfunc_wrapper`` of `numba.njit`, and ``_nrt`` of `numba.cfunc`,
* `make_array`, `make_tuple` and `get_dummy_value` of the context of an intrinsic, and
  `numba.np.arrayobj.populate_array`: how arrays, tuples and None are laid out,
* that the text by `CFunc.inspect_llvm` holds all that a function calls: `object_code` checks it.

`probe` tells whether they are there.
"""

from __future__ import annotations

import inspect
import os
import platform
from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numba
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from wavefilt.arrays import DType

Function: TypeAlias = Callable[..., Any]
"""A function that numba compiles: it infers the types at the call."""

# no "reassoc": a sample must not depend on its place in a vector; no "nnan", "ninf": gaps and overflow are kept
OPTIONS = {"error_model": "numpy", "fastmath": {"contract", "nsz"}, "_nrt": False}
FOREIGN = ("numba", "Py", "_Py", "NRT_")
"""How names begin that are defined in a process that has imported numba alone."""
WORD = ir.IntType(64)


def probe() -> None:
    """Raise ImportError or AttributeError if this version of numba lacks what is used here."""
    from numba.core.base import BaseContext
    from numba.np.arrayobj import populate_array

    _ = populate_array, BaseContext.make_array, BaseContext.make_tuple, BaseContext.get_dummy_value
    _ = numba.cfunc, binding.create_pass_builder


def part(function: Function, **options: object) -> Function:
    """Return a function that only kernels call: it has no entry for Python, and allocates no memory."""
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(**OPTIONS | wrappers | options)(function)  # type: ignore[no-any-return]


class Elements(NamedTuple):
    """An array as its kernel has it: a pointer to the first element, and how many there are."""

    data: ir.Value
    count: ir.Value


class Emitter:
    """Writes the instructions of an intrinsic, whose first array has elements of the numba type ``element``."""

    def __init__(self, context: Any, builder: ir.IRBuilder, element: types.Type | None) -> None:
        self.context, self.builder, self.kind = context, builder, element
        if element is not None:
            bits = element.bitwidth
            whole, real = isinstance(element, types.Integer), {32: ir.FloatType(), 64: ir.DoubleType()}
            self.element = ir.IntType(bits) if whole else real[bits]
            self.size = bits // 8

    def array(self, kind: types.Array, address: ir.Value, shape: Sequence[ir.Value]) -> ir.Value:
        """Return the C-contiguous array of this kind and shape at an address."""
        from numba.np.arrayobj import populate_array

        size = ir.Constant(WORD, kind.dtype.bitwidth // 8)
        strides = [size]
        for length in list(shape)[:0:-1]:
            strides.insert(0, self.builder.mul(strides[0], length))
        array = self.context.make_array(kind)(self.context, self.builder)
        data = self.builder.inttoptr(address, array.data.type)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()


def instructions(signature: Callable[..., Any] = types.void, more: int = 0) -> Callable[[Function], Function]:
    """Return a decorator that makes an intrinsic of ``write(emit, *values)``, which writes its instructions.

    Arrays come as `Elements`. ``signature(*kinds)`` is the signature by the types of the arguments. ``write`` returns
    a value, several for a tuple, or None. If it takes any number of values at the end, the intrinsic takes ``more``.
    """

    def decorate(write: Function) -> Function:
        own = list(inspect.signature(write).parameters.values())
        if own[-1].kind is inspect.Parameter.VAR_POSITIONAL:
            own[-1:] = [inspect.Parameter(f"more{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for i in range(more)]

        def typed(typing, *kinds):
            arrays = [kind for kind in kinds if isinstance(kind, types.Array)]

            def generate(context, builder, signature, values):
                emit = Emitter(context, builder, arrays[0].dtype if arrays else None)
                given = list(values)
                for i, kind in enumerate(kinds):
                    if isinstance(kind, types.Array):
                        array = context.make_array(kind)(context, builder, values[i])
                        given[i] = Elements(array.data, array.nitems)
                found = write(emit, *given)
                if found is None:
                    return context.get_dummy_value()
                several = isinstance(found, list)
                return context.make_tuple(builder, signature.return_type, found) if several else found

            return signature(*kinds), generate

        typed.__name__, typed.__doc__ = write.__name__, write.__doc__
        typed.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]  # numba asks for it
        return intrinsic(typed)  # type: ignore[no-any-return]

    return decorate


def _arguments(kinds: Sequence[types.Type], named: Sequence[tuple[str, Sequence[str]]]) -> Function:
    """Return an intrinsic that makes a tuple of the words packed by `native.Work`, followed by its own arguments.

    ``named`` are the tuples among them with the names of their members; a single argument has the name "".
    """
    given, groups = iter(kinds), list[types.Type]()
    for name, members in named:
        own = [next(given) for _ in members]
        groups.append(types.NamedTuple(own, namedtuple(name, members)) if name else own[0])

    def signature(*own: types.Type) -> Any:
        return types.Tuple((*groups, *own[1:]))(*own)

    @instructions(signature, more=3)
    def take(emit: Emitter, block: ir.Value, *rest: ir.Value) -> list[ir.Value]:
        builder, places = emit.builder, count()
        pointer = builder.inttoptr(block, WORD.as_pointer())

        def read(kind: types.Type) -> ir.Value:
            number = 1 + (kind.ndim if isinstance(kind, types.Array) else 0)
            words = [builder.load(builder.gep(pointer, [ir.Constant(WORD, next(places))])) for _ in range(number)]
            if isinstance(kind, types.Array):
                return emit.array(kind, words[0], words[1:])
            if isinstance(kind, types.Float):
                return builder.bitcast(words[0], ir.DoubleType())
            return builder.trunc(words[0], ir.IntType(kind.bitwidth)) if kind.bitwidth < 64 else words[0]

        def group(kind: types.Type) -> ir.Value:
            together = isinstance(kind, types.NamedTuple)
            return emit.context.make_tuple(builder, kind, [*map(read, kind.types)]) if together else read(kind)

        return [*map(group, groups), *rest]

    return take


@cache
def _machine() -> binding.TargetMachine:
    """Return LLVM's compiler for this processor, whose code may be loaded at any address."""
    cpu = os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES") or binding.get_host_cpu_features().flatten()
    static = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="static" if static else "default", codemodel="jitdefault", jit=True
    )


@intrinsic
def _number(typing: Any, found: types.Type) -> Any:
    """Return the result of a kernel, or 0 if it returns nothing."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        if isinstance(found, types.NoneType):
            return ir.Constant(WORD, 0)
        return context.cast(builder, values[0], found, types.int64)

    return types.int64(found), emit


def object_code(
    function: Function, symbol: str, kinds: Sequence[tuple[DType, int]], named: Sequence[tuple[str, Sequence[str]]]
) -> bytes:
    """Return an object file with ``function(*arguments, workspace, begin, end)`` as ``symbol``.

    It takes a pointer to the packed arguments of these kinds (dtype and dimensions), which the function gets by
    ``named`` tuples, and all other parameters and the result are int64. Raises RuntimeError if the code needs something
    that only a process with numba has.
    """
    scalars = [(numba.from_dtype(dtype), dimensions) for dtype, dimensions in kinds]
    own = [types.Array(kind, dimensions, "C") if dimensions else kind for kind, dimensions in scalars]
    take = _arguments(own, named)

    def run(block, workspace, begin, end):
        return _number(function(*take(block, workspace, begin, end)))

    compiled = numba.cfunc(types.int64(*(types.int64,) * 4), **OPTIONS)(run)
    module = binding.parse_assembly(compiled.inspect_llvm())
    entry = module.get_function(compiled.native_name)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != entry.name:
            value.linkage = "internal"
    entry.name = symbol
    tuning = binding.create_pipeline_tuning_options(speed_level=3)
    tuning.slp_vectorization = False
    builder = binding.create_pass_builder(_machine(), tuning)
    passes = builder.getModulePassManager()
    passes.add_ipsccp_pass()  # kernels raise nothing: with this the code that reports errors goes
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    foreign = [value.name for value in module.functions if value.is_declaration and value.name.startswith(FOREIGN)]
    if foreign:
        raise RuntimeError(f"the machine code of {symbol} by numba {numba.__version__} calls {', '.join(foreign)}")
    return bytes(_machine().emit_object(module))
