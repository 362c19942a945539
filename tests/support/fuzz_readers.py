"""Fuzz the readers, guided by coverage (extra `fuzz`): python tests/support/fuzz_readers.py

Each kind of file is fuzzed in a process of its own, so that a crash is a finding too. Files that violate the contract
of `reader_contract.py` are put into tests/support/findings, one for each defect, where a regular test reads them.
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
"""The memory of one input in this number is measured."""
RESIDENT = 16 << 20
"""Bytes by which an input may raise the resident memory of the process, beside those its size allows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000, help="inputs, in equal shares for each kind")
    parser.add_argument("--seconds", type=int, default=3600, help="time limit for all kinds together")
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
        runs, seconds = -(-options.runs // len(kinds)), options.seconds // len(kinds)
        found[kind] = _in_a_process(kind, runs, seconds, options.corpus / kind)
        print(kind, json.dumps(found[kind]), flush=True)
    inputs = sum(figures["inputs"] for figures in found.values())
    findings = sum(len(figures["findings"]) for figures in found.values())
    print(f"{inputs} inputs, {findings} findings")
    if options.save:
        options.save.write_text(json.dumps({"inputs": inputs, "findings": findings, "kinds": found}, indent=1) + "\n")
    sys.exit(1 if findings else 0)


def _in_a_process(kind: str, runs: int, seconds: int, corpus: Path) -> dict[str, Any]:
    """Fuzz one kind in a process of its own and return its figures."""
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
        limits += ["-timeout=10", "-rss_limit_mb=2048", f"-dict={tokens}", f"-artifact_prefix={kept}/"]
        command = [sys.executable, __file__, "--one", kind, figures, "--runs", runs, "--", corpus, kept, *limits]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace")
        if not figures.exists():
            sys.exit(f"{kind}: the fuzzer did not start\n{done.stderr[-3000:]}")
        result = json.loads(figures.read_text())
    if "Done " not in done.stderr:  # after that line its alarm may still end Python, which is no finding
        result["findings"]["crash"] = done.stderr[-600:]
    return result


def _fuzz(kind: str, runs: int, figures: Path) -> None:
    """Fuzz in this process; figures are written now and then, because libFuzzer may end it at any time."""
    import atheris
    import numpy as np  # before wavefilt, or it is instrumented with it
    import pywt  # noqa: F401
    import scipy.io.wavfile

    with atheris.instrument_imports(include=["wavefilt.io"]):
        import wavefilt.io  # noqa: F401
    functions = (np.lib.format.descr_to_dtype, ast.literal_eval, zipfile.ZipFile.open, scipy.io.wavfile.read)
    for function in functions:
        atheris.instrument_func(function)
    from tests.support.reader_contract import FINDINGS, TIMES, Broken, read_bytes, without_obspy
    from tests.support.reader_seeds import seeds

    result: dict[str, Any] = {"inputs": 0, "read": 0, "errors": 0, "measured": 0, "seconds": 0.0, "findings": {}}
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
        if result["inputs"] % 1000 == 0 or result["inputs"] >= runs:
            save()

    with without_obspy():
        for data in seeds(kind).values():  # imports and memory of the first time
            read_bytes(data, kind, memory=False)
        save()
        atheris.Setup([sys.argv[0], *sys.argv[sys.argv.index("--") + 1 :]], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
