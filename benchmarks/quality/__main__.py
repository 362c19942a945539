"""``python -m wavefilt.benchmarks.quality [PART] [--quick] [-o FILE]`` measures denoising quality."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from tqdm import tqdm

from wavefilt.benchmarks.common.command import Results
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.quality import harness, records, tables


def measured(part: str, quick: bool, field: Sequence[Path] = ()) -> Row:
    """Return the result of a part: its condensed rows. Sections include the ``field`` records in these files."""
    cases, rows_of, by = harness.PARTS[part]
    if field and part == "sections":
        cases = partial(records.cases_of_sections, field=field)
    started = time.perf_counter()
    rows = [row for case in tqdm(list(cases(quick)), leave=False, disable=None) for row in rows_of(case)]
    facts = {"seconds": time.perf_counter() - started, "left_out": harness.left_out(part)}
    return result(f"quality {part}", part=part, **facts, rows=harness.condensed(rows, by))


@click.command()
@click.argument("part", type=click.Choice([*harness.PARTS, "all"]), default="all")
@click.option("--quick", is_flag=True, help="Few draws of noise, and small sections.")
@click.option("--field", multiple=True, type=click.Path(exists=True, path_type=Path), help="A gather of the field.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File for the result; for all parts, a folder.")
def main(part: str, quick: bool, field: tuple[Path, ...], output: Path | None) -> None:
    """Measure gains, picks, verdicts and ranks on records whose clean samples are known."""
    for name in harness.PARTS if part == "all" else (part,):
        path = output / f"quality_{name.replace('-', '_')}.json" if output and part == "all" else output
        Results(path=path, overwrite=True).report(measured(name, quick, field), tables.report)


if __name__ == "__main__":
    main()
