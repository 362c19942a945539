"""Pins what wavefilt does, bit for bit, so that its modules can be moved without a change of behaviour.

    python tests/support/golden.py write CHECKOUT OUT.json [--backends pywavelets,numba] [--only PREFIX]
    python tests/support/golden.py compare A.json B.json [--summary]

`write` runs every case of `golden_cases` with the package of that checkout (this one or an older one, without changes
that are not committed) and writes the results by the names of the cases: digests of arrays and files, other values as
they are. Only public names are imported. If a case raises, its result is "raises TYPE" and the message is under
`error/NAME`, so that messages may change on purpose: `compare` prints every difference except those under the prefixes
of `--without`, as `error/`, `help/` or `names/`, and exits with 1 if there is one. With `--summary` it prints how many
there are in each area.

Each area runs in a process of its own: the choice of `backend="auto"` depends on what a process has loaded before.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from golden_cases import AREAS, ENVIRONMENT, result


def run_unit(checkout: Path, unit: str, only: str, target: Path) -> None:
    """Run the cases of an area (`AREA` or `AREA/BACKEND`), with the package that is imported here."""
    import wavefilt

    assert wavefilt.__file__, "wavefilt is no package here"
    name, _, backend = unit.partition("/")
    cases = AREAS[name][0](*([backend] if backend else []))
    found: dict[str, Any] = {}
    for rest, case in cases:
        if f"{unit}/{rest}".startswith(only) or (only.startswith("error/") and name != "error"):
            new = result(f"{unit}/{rest}", case)
            assert not found.keys() & new.keys(), f"two cases are named {unit}/{rest}"
            found |= new
    for module in [m for key, m in sys.modules.items() if key.partition(".")[0] == "wavefilt"]:
        assert checkout in Path(module.__file__).resolve().parents, f"{module.__file__} is not in {checkout}"
    target.write_text(json.dumps({key: value for key, value in found.items() if key.startswith(only)}))


def write(checkout: Path, target: Path, backends: list[str], only: str) -> None:
    """Run all areas, two at a time."""
    units = [
        f"{name}/{backend}" if backend else name
        for name, (_, each) in AREAS.items()
        for backend in (backends if each else [""])
    ]
    units = [u for u in units if only.startswith(("error/", f"{u}/")) or f"{u}/".startswith(only)]
    begin, found, done = time.perf_counter(), {}, 0
    environment = {
        **os.environ,
        **ENVIRONMENT,
        "PYTHONPATH": str(checkout),
        "GOLDEN_SAMPLES": str(checkout / "samples"),
    }

    def run(unit: str) -> tuple[str, dict[str, Any], float]:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out.json")
            command = [sys.executable, __file__, "unit", str(checkout), unit, str(out), "--only", only]
            subprocess.run(command, cwd=folder, env=environment, check=True)
            return unit, json.loads(out.read_text()), time.perf_counter() - start

    with ThreadPoolExecutor(2) as pool:
        for unit, results, seconds in pool.map(run, units):
            found, done = found | results, done + 1
            print(f"{done}/{len(units)} {unit}: {len(results)} results, {seconds:.1f} s", file=sys.stderr)
    target.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
    print(f"{len(found)} results, {time.perf_counter() - begin:.0f} s", file=sys.stderr)


ABSENT = object()


def compare(a: Path, b: Path, without: tuple[str, ...], summary: bool) -> bool:
    """Print every difference, or how many there are in each area; whether there is none."""
    before, after = json.loads(a.read_text()), json.loads(b.read_text())
    names = sorted(name for name in before.keys() | after.keys() if not name.startswith(without))
    different = [name for name in names if before.get(name, ABSENT) != after.get(name, ABSENT)]
    kinds = {n: "added" if n not in before else "missing" if n not in after else "changed" for n in different}
    if summary:
        for (area, kind), count in sorted(Counter((name.split("/")[0], kinds[name]) for name in different).items()):
            print(f"{count:>6}  {area:<20}  {kind}")
    for name in [] if summary else different:
        print(f"{kinds[name]}: {name}")
        if kinds[name] == "changed":
            texts = (json.dumps(found[name], indent=1).replace("\\n", "\n") for found in (before, after))
            lines = difflib.ndiff(*(text.splitlines() for text in texts))
            print("\n".join(f"  {line}" for line in lines if line[0] in "+-"))
    print(f"{len(different)} of {len(names)} results differ")
    return not different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "compare", "unit"])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--only", default="", metavar="PREFIX")
    parser.add_argument("--backends", default="pywavelets,numba", help="names, with commas between them")
    parser.add_argument("--without", action="append", default=[], metavar="PREFIX", help="leave these out; repeatable")
    parser.add_argument("--summary", action="store_true", help="print counts by area instead")
    given = parser.parse_args()
    first, *rest, last = given.paths
    if given.command == "compare":
        sys.exit(not compare(Path(first), Path(last), tuple(given.without), given.summary))
    if given.command == "unit":
        run_unit(Path(first).resolve(), rest[0], given.only, Path(last))
    else:
        write(Path(first).resolve(), Path(last), given.backends.split(","), given.only)


if __name__ == "__main__":
    main()
