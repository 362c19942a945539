"""numba's front end without what it has done before: it makes the same code in three quarters of the time, or less.

Everything here touches what numba and numba-cuda do not promise. It is in force under numba's lock alone, while a
kernel of ours is compiled.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from numba.core.targetconfig import TargetConfig
    from numba.core.types.functions import BaseFunction
    from numba.core.typing import Signature
    from numba.core.typing.context import BaseContext
    from numba.types import Type

Resolve: TypeAlias = "Callable[[BaseFunction, BaseContext, tuple[Type, ...], dict[str, Type]], Signature]"
"""`BaseFunction.get_call_type`: types of a call of a built-in function, such as ``+``."""
Replaced: TypeAlias = tuple[type, str, Callable[..., object]]
"""A class, the name of a method, and what takes its place."""


@contextmanager
def quick(targetconfig: ModuleType, *more: Replaced) -> Iterator[None]:
    """Compile without the slowest detours of the compiler that has this module ``targetconfig``, and with ``more``.

    The garbage collector goes through all that was compiled again and again, to find next to nothing.
    """
    from numba.core.types.functions import BaseFunction

    collecting, config = gc.isenabled(), targetconfig.TargetConfig
    own: list[Replaced] = [
        (BaseFunction, "get_call_type", _resolved(BaseFunction.get_call_type, targetconfig)),
        (config, "values", _values),
        (config, "__hash__", lambda flags: _hash(tuple(flags.options))),
        *more,
    ]
    theirs = [(owner, name, vars(owner)[name]) for owner, name, _ in own]
    gc.disable()
    for owner, name, function in own:
        setattr(owner, name, function)
    try:
        yield
    finally:
        for owner, name, function in theirs:
            setattr(owner, name, function)
        if collecting:
            gc.enable()


def _resolved(resolve: Resolve, targetconfig: ModuleType) -> Resolve:
    """The same but for calls met before: numba tries all implementations in turn."""
    known: dict[Hashable, Signature] = {}

    def get_call_type(
        function: BaseFunction, context: BaseContext, args: tuple[Type, ...], kws: dict[str, Type]
    ) -> Signature:
        flags = targetconfig.ConfigStack.top_or_none()
        key = function, id(context), tuple(args), tuple(kws.items()), repr(None if flags is None else flags._values)
        if key not in known:
            known[key] = resolve(function, context, args, kws)
        return known[key]

    return get_call_type


@cache
def _hash(options: tuple[str, ...]) -> int:
    """`TargetConfig.__hash__`, which is that of the names of all options, whatever their values are."""
    return hash(tuple(sorted(options)))


def _values(flags: TargetConfig) -> dict[str, object]:
    """`TargetConfig.values` without a property call for each: it is asked for at every comparison of flags."""
    own = flags._values
    return {name: own.get(name, option.default) for name, option in flags.options.items()}
