"""The readers against bytes that a coverage-guided fuzzer makes (extra `fuzz`): python tests/support/fuzz_readers.py

Each kind of file is a process of its own, so that a crash is a finding too. Files that break the contract of
`reader_contract.py` are put into tests/support/findings, one for each defect, where a regular test reads them.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

LONGEST = 4096
MEASURED = 8
"""One input in so many has its memory measured."""
RESIDENT = 16 << 20
"""Bytes by which no other input may raise the resident memory of the process, beside those its size allows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000, help="inputs, in equal shares for each kind")
    parser.add_argument("--seconds", type=int, default=3600, help="at most, for all kinds together")
    parser.add_argument("--kinds", nargs="*", help="of reader_contract.KINDS; all by default")
    parser.add_argument("--corpus", type=Path, default=Path("build/fuzz"), help="where inputs of new coverage are kept")
    parser.add_argument("--save", type=Path, help="JSON file for the figures")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "FIGURES"), help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    if options.one:
        _fuzz(options.one[0], options.runs, Path(options.one[1]))
        return
    from tests.support.reader_contract import KINDS

    kinds = options.kinds or list(KINDS)
    found = {}
    for kind in kinds:
        found[kind] = _apart(kind, options.runs // len(kinds), options.seconds // len(kinds), options.corpus / kind)
        print(kind, json.dumps(found[kind]), flush=True)
    total = {
        "inputs": sum(figures["inputs"] for figures in found.values()),
        "findings": sum(len(figures["findings"]) for figures in found.values()),
    }
    print(f"{total['inputs']} inputs, {total['findings']} findings")
    if options.save:
        options.save.write_text(json.dumps(_described() | total | {"kinds": found, "long": _long()}, indent=1) + "\n")
    sys.exit(1 if total["findings"] else 0)


def _long() -> dict[str, Any]:
    """Time and memory of long files, each measured without the other."""
    from tests.support.reader_contract import read_bytes, readers_alone
    from tests.support.reader_seeds import large

    with readers_alone():
        return {
            name: {"bytes": len(data)}
            | read_bytes(data, kind, memory=False)._asdict()
            | {"memory": read_bytes(data, kind).memory}
            for name, (kind, data) in large().items()
        }


def _described() -> dict[str, Any]:
    from wavefilt.benchmarks.common.environment import environment, version

    command = " ".join(["python", "tests/support/fuzz_readers.py", *sys.argv[1:]])
    return {
        "study": "fuzzing",
        "date": time.strftime("%Y-%m-%d"),
        "command": command,
        "atheris": version("atheris"),
        "longest": LONGEST,
        "environment": environment(),
    }


def _apart(kind: str, runs: int, seconds: int, corpus: Path) -> dict[str, Any]:
    """Figures of a kind, fuzzed in a process of its own."""
    from tests.support.reader_contract import FINDINGS
    from tests.support.reader_seeds import TOKENS, seeds

    corpus.mkdir(parents=True, exist_ok=True)
    for name, data in seeds(kind).items():
        (corpus / name.replace(" ", "-")).write_bytes(data)
    kept = FINDINGS / kind
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tokens, figures = Path(folder, "tokens"), Path(folder, "figures")
        escaped = ("".join(map("\\x{:02x}".format, token)) for token in TOKENS)
        tokens.write_text("".join(f'"{token}"\n' for token in escaped))
        limits = [f"-atheris_runs={runs}", f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-len_control=20"]
        limits += ["-timeout=10", "-rss_limit_mb=2048"]
        folders = [str(corpus), str(kept), f"-dict={tokens}", f"-artifact_prefix={kept}/"]
        command = [sys.executable, __file__, "--one", kind, figures, "--runs", str(runs), "--", *folders, *limits]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace")
        if not figures.exists():
            sys.exit(f"{kind}: the fuzzer did not start\n{done.stderr[-3000:]}")
        result = json.loads(figures.read_text())
    status = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", done.stderr)
    result |= dict(zip(("coverage", "features", "corpus"), map(int, status[-1]), strict=True)) if status else {}
    if "Done " not in done.stderr:  # once it says so, its alarm may still end Python, which tells nothing
        result["findings"]["crash"] = done.stderr[-600:]
    return result


def _fuzz(kind: str, runs: int, figures: Path) -> None:
    """Fuzz in this process; figures are written now and then, because libFuzzer may end it at any time."""
    import atheris
    import h5py  # noqa: F401  # these before, or they are instrumented with it
    import numpy as np
    import pywt  # noqa: F401
    import scipy.io.wavfile
    import segyio  # noqa: F401

    with atheris.instrument_imports(include=["wavefilt.io"]):
        from wavefilt.io.obspy import waveforms  # noqa: F401
    header, waves = np.lib._format_impl, scipy.io.wavfile
    for function in (
        header._read_array_header,
        header._filter_header,
        header.descr_to_dtype,
        ast.literal_eval,
        zipfile.ZipFile._RealGetContents,
        zipfile.ZipFile.open,
        zipfile.ZipInfo._decodeExtra,
        waves.read,
        waves._read_fmt_chunk,
        waves._read_data_chunk,
    ):
        atheris.instrument_func(function)
    from tests.support.reader_contract import FINDINGS, TIMES, Broken, read_bytes, readers_alone
    from tests.support.reader_seeds import seeds

    result: dict[str, Any] = {
        "inputs": 0,
        "read": 0,
        "errors": 0,
        "measured": 0,
        "slowest": 0.0,
        "memory": 0,
        "seconds": 0.0,
        "findings": {},
    }
    begin = time.monotonic()

    def save() -> None:
        result["seconds"] = round(time.monotonic() - begin, 1)
        figures.write_text(json.dumps(result))

    def one(data: bytes) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        measure = zlib.crc32(data[::-1]) % MEASURED == 0
        result["inputs"] += 1
        try:
            read = read_bytes(data, kind, memory=measure)
            grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
            if grown > TIMES * len(data) + RESIDENT and result["inputs"] > 100:
                raise Broken("resident memory", f"{grown} bytes more for {len(data)}")
        except Broken as error:
            if error.what not in result["findings"]:
                result["findings"][error.what] = str(error)[:300]
                (FINDINGS / kind / re.sub(r"\W+", "-", error.what)).write_bytes(data)
        else:
            result["read" if read.story == "read" else "errors"] += 1
            result["measured"] += measure
            result["slowest"] = max(result["slowest"], round(read.seconds, 6))
            result["memory"] = max(result["memory"], read.memory)
        if result["inputs"] % 1000 == 0 or result["inputs"] >= runs:
            save()

    with readers_alone():
        for data in seeds(kind).values():  # imports and memory of the first time
            read_bytes(data, kind, memory=False)
        save()
        atheris.Setup([sys.argv[0], *sys.argv[sys.argv.index("--") + 1 :]], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
