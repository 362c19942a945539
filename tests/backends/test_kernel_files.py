"""Files of compiled kernels, which many processes read and write at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from wavefilt.backends import kernel_files


def test_what_is_kept_is_read_from_the_first_folder_that_has_it(tmp_path):
    folders = [tmp_path / name for name in ("none", "first", "second")]
    for folder in folders[1:]:
        folder.mkdir()
        kernel_files.write("a.o", folder, folder.name.encode())
    assert kernel_files.read("a.o", folders) == b"first"
    assert kernel_files.read("b.o", folders) is None
    assert [path.name for path in tmp_path.rglob("*.part")] == []


@pytest.mark.parametrize("harm", [lambda b: b[:-1], lambda b: b[:20], lambda b: b"", lambda b: b[:-1] + b"x"])
def test_a_damaged_file_is_as_none(tmp_path, harm):
    kernel_files.write("a.o", tmp_path, b"code of a kernel")
    path = tmp_path / "a.o"
    path.write_bytes(harm(path.read_bytes()))
    assert kernel_files.read("a.o", [tmp_path]) is None


def test_a_reader_never_sees_half_of_a_kernel(tmp_path):
    codes, seen, done = [bytes([i]) * 200_000 for i in range(2)], set[bytes | None](), threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(kernel_files.read("a.o", [tmp_path]))

    kernel_files.write("a.o", tmp_path, codes[0])
    reader = threading.Thread(target=look)
    reader.start()
    for i in range(200):
        kernel_files.write("a.o", tmp_path, codes[i % 2])
    done.set()
    reader.join()
    assert seen <= set(codes)


def test_folders(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    found = kernel_files.folders(tmp_path)
    assert found[0] == tmp_path / "__pycache__"
    assert all(folder.name == "wavefilt" for folder in found[1:])
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "own"))
    assert kernel_files.folders(tmp_path) == [tmp_path / "own" / "wavefilt"]
    with kernel_files.writable(tmp_path) as folder:
        assert folder.is_dir()
    (tmp_path / "own" / "wavefilt").rmdir()
    (tmp_path / "own" / "wavefilt").write_bytes(b"")
    with kernel_files.writable(tmp_path) as folder:
        (folder / "a.o").write_bytes(b"")
    assert not Path(folder).exists()
