"""Cases by area, running one in an empty folder, and its result as text: digests of arrays and bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import itertools
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

Cases = Iterator[tuple[str, Callable[[], Any]]]

ENVIRONMENT = {"WAVEFILT_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
ENVIRONMENT |= {"COLUMNS": "80", "PYTHONHASHSEED": "0"}
"""What results or the width of a text could depend on."""
AREAS: dict[str, tuple[Callable[..., Cases], bool]] = {}
"""The cases of each area, and whether there are some for each backend."""
MASKS = {
    r"[\d.e+-]+ s \(": "<time> s (",  # of a file, in its line
    r"(?m)^seconds .*$": "seconds <times>",  # of a batch, in its table
    r"[\d.e+-]+ s, [\d.e+-]+ files/s": "<time>",
    r'"(seconds|elapsed_s)": [\d.e+-]+': r'"\1": <time>',
    r'"versions": \{[^}]*\}': '"versions": <versions>',
    r"wavefilt(,? version)? \d+(\.\d+)+": "wavefilt <version>",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ wavefilt": "<now> wavefilt",  # in a history of xarray
    r" at 0x[0-9a-f]+": " at <address>",
}
"""What differs from run to run, or between versions, in texts."""


class Command(NamedTuple):
    """What a command left: the error text of a failed one goes to `error/`."""

    code: int
    out: Any
    err: str
    files: dict[str, Any]


def area(function: Callable[..., Cases]) -> Callable[..., Cases]:
    """Take the cases into `AREAS`, by the function's name."""
    AREAS[function.__name__.strip("_")] = function, bool(inspect.signature(function).parameters)
    return function


def sweep(name: str, function: Callable[..., Any], **options: Any) -> Cases:
    """The function with all combinations of options: each a list of values, or a dict with a label for each."""
    tables = [o if isinstance(o, dict) else {label(value): value for value in o} for o in options.values()]
    for labels in itertools.product(*tables):
        values = {key: table[label] for key, table, label in zip(options, tables, labels, strict=True)}
        yield "/".join([name, *map(str, labels)]), partial(function, **values)


def label(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def masked(text: str) -> str:
    """The text without what differs from run to run."""
    for folder in {os.getcwd(), os.path.realpath(os.getcwd())}:
        text = text.replace(folder, "<folder>")
    for pattern, instead in MASKS.items():
        text = re.sub(pattern, instead, text)
    return text


def described(value: Any) -> Any:
    """A result for JSON: digests of arrays and bytes, the rest as it is."""
    if isinstance(value, np.ma.MaskedArray):
        parts = [described(value.data), described(np.ma.getmaskarray(value)), repr(value.fill_value)]
        return {"masked": parts}
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        kind = f"{array.dtype.str} {array.shape}"
        data = np.ascontiguousarray(array).tobytes()
        if array.dtype == np.longdouble:  # 10 bytes of 16, the others being whatever was in memory
            data = np.frombuffer(data, "u1").reshape(-1, array.itemsize)[:, :10].tobytes()
        return f"{kind} {digest(kind.encode() + data)}"
    if isinstance(value, bytes):
        return f"{len(value)} bytes {digest(value)}"
    if hasattr(value, "__cuda_array_interface__"):
        return {type(value).__name__: described(value.get() if hasattr(value, "get") else value.copy_to_host())}
    if isinstance(value, Command):
        return described(value._asdict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"is": type(value).__name__} | {
            field.name: described(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {str(key): described(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(entry) for entry in value]
    return value if value is None or isinstance(value, (bool, int)) else masked(str(value))


def result(name: str, case: Callable[[], Any]) -> dict[str, Any]:
    """What comes of a case in an empty folder, by its name."""
    top, folder = os.getcwd(), tempfile.mkdtemp(dir=".")
    os.chdir(folder)
    message = None
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)
            found = case()
        if isinstance(found, Command) and found.code:
            found, message = found._replace(err=""), found.err
        found = described(found)
        if told:
            words = {masked(f"{warning.category.__name__}: {warning.message}") for warning in told}
            found = {"found": found, "warnings": sorted(words)}
    except Exception as error:
        found, message = f"raises {type(error).__name__}", f"{type(error).__name__}: {error}"
    finally:
        text = None if message is None else masked(message)
        os.chdir(top)
        shutil.rmtree(folder)
    if text is None:
        return {name: found}
    return {name: [found, text]} if name.startswith("error/") else {name: found, f"error/{name}": text}
