"""The cache folder: where it is, whom it trusts, and how it stays small."""

import os
import sys
import time

import pytest

from vta_isa.cache import (
    GRACE_SECONDS,
    LEFTOVER_SECONDS,
    STAMP_SECONDS,
    cache_folder,
    is_private,
    prune,
    used,
    write_whole,
)

HOUR = 3600
HASH = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("VTA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def aged(path, hours: float, size: int = 100):
    """A file, or a folder with one, last used so long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix or path.name.startswith(".new-"):
        path.write_bytes(bytes(size))
    else:
        path.mkdir()
        (path / "deeper").mkdir()
        (path / "deeper" / "file").write_bytes(bytes(size))
    stamp = time.time() - hours * HOUR
    os.utime(path, (stamp, stamp))
    return path


def test_the_folder_is_the_variable_then_the_platform(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("VTA_CACHE_DIR")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "vta-sdk"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "vta-sdk"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "vta-sdk"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "vta-sdk"


def test_the_longest_unused_go_first(folder):
    names = [f"kernels/{HASH}.o", f"rtl/{HASH[:32]}.so", f"rtl/cocotb-{HASH[:32]}"]
    names += [f"synth/{HASH}.json", f"timing-{HASH[:16]}"]
    kept = [aged(folder / name, 10 + number) for number, name in enumerate(names)]
    assert prune(500) == []
    assert prune(499) == [kept[4]]
    assert prune(250) == [kept[3], kept[2]]
    assert [path.exists() for path in kept] == [True, True, False, False, False]
    used(kept[1])
    assert prune(100) == [kept[0]]


def test_what_was_used_lately_stays_whatever_the_limit(folder):
    lately = aged(folder / "rtl" / f"{HASH}.so", GRACE_SECONDS / HOUR - 0.1)
    before = aged(folder / "kernels" / f"{HASH}.o", GRACE_SECONDS / HOUR + 0.1)
    assert prune(0) == [before]
    assert lately.exists()


def test_what_is_not_ours_is_neither_counted_nor_dropped(folder):
    theirs = [
        aged(folder / "notes.txt", 99),
        aged(folder / "rtl" / "notes.txt", 99),
        aged(folder / "photos" / f"{HASH}.jpg", 99),
        aged(folder / "mine-0123456789abcdef.txt", 99),
    ]
    ours = aged(folder / "rtl" / f"{HASH}.so", 99)
    assert prune(100) == []
    assert prune(99) == [ours]
    assert all(path.exists() for path in theirs)


def test_leftovers_of_killed_builds_go(folder):
    days = LEFTOVER_SECONDS / HOUR
    old = [
        aged(folder / "rtl" / ".build-x1", days + 1),
        aged(folder / "kernels" / ".new-y", days + 1),
    ]
    running = aged(folder / "rtl" / ".build-z1", days - 1)
    assert sorted(prune()) == sorted(old)
    assert running.exists()


def test_a_link_is_dropped_and_not_what_it_names(folder, tmp_path):
    elsewhere = aged(tmp_path / "elsewhere", 99)
    (folder / "rtl").mkdir(parents=True)
    (folder / "rtl" / HASH).symlink_to(elsewhere)
    assert prune(0) == [folder / "rtl" / HASH]
    assert (elsewhere / "deeper" / "file").exists()


def test_stamps_are_renewed_when_they_are_old(folder):
    path = aged(folder / "kernels" / f"{HASH}.o", STAMP_SECONDS / HOUR - 0.01)
    before = path.stat().st_mtime
    used(path)
    assert path.stat().st_mtime == before
    os.utime(path, (0, before - 60))
    used(path)
    assert time.time() - path.stat().st_mtime < 60
    used(folder / "nothing")


@pytest.mark.parametrize("there", [False, True])
def test_without_a_folder_there_is_nothing_to_drop(folder, there):
    if there:
        folder.write_text("a file where the folder should be")
    assert prune(0) == []


def test_a_file_is_written_whole_or_not_at_all(folder, monkeypatch):
    folder.mkdir()
    write_whole(folder / "a", b"first")
    assert (folder / "a").read_bytes() == b"first"

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write_whole(folder / "a", b"second")
    assert (folder / "a").read_bytes() == b"first"
    assert list(folder.iterdir()) == [folder / "a"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize(("mode", "private"), [(0o700, True), (0o755, True), (0o770, False)])
def test_what_others_may_write_is_not_private(tmp_path, mode, private):
    tmp_path.chmod(mode)
    assert is_private(tmp_path) == private
