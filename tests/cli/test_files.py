"""Output files are whole or absent, and refused in time."""

import os
import stat
from pathlib import Path

import pytest

from vta.files import check_writable, whole_file, write_whole


def test_writes_bytes_and_text(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"\x00\xff")
    write_whole(tmp_path / "b", "é\n")
    assert (tmp_path / "a").read_bytes() == b"\x00\xff"
    assert (tmp_path / "b").read_bytes() == "é\n".encode()


def test_pieces_become_one_file_or_none(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with whole_file(path) as file:
        file.write(b"1")
        assert not path.exists()
        file.write(b"2")
    assert path.read_bytes() == b"12"
    with pytest.raises(FileNotFoundError) as refusal:
        _write_and_fail(path)
    assert refusal.value.filename == "another file"  # not taken for one of ``path``
    assert path.read_bytes() == b"12"
    assert os.listdir(tmp_path) == ["a"]


def _write_and_fail(path: Path) -> None:
    with whole_file(path) as file:
        file.write(b"3")
        raise FileNotFoundError(2, "not found", "another file")


def test_pieces_for_a_folder_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError, match="cannot write: there is no folder"),
        whole_file(tmp_path / "no" / "a"),
    ):
        pass


def test_nothing_but_the_file_is_left(tmp_path: Path) -> None:
    check_writable(tmp_path / "a")
    assert os.listdir(tmp_path) == []
    write_whole(tmp_path / "a", b"1")
    check_writable(tmp_path / "a")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"1"


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_whole(tmp_path / "a", b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_an_existing_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_whole(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_bytes() == b"new"


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="cannot write: no space left on device") as refusal:
            write_whole(path, b"new")
    assert refusal.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    check_writable(os.devnull)
    write_whole(os.devnull, b"gone")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("action", [check_writable, lambda path: write_whole(path, b"")])
def test_a_folder_that_is_not_there_is_named(tmp_path: Path, action) -> None:
    path = tmp_path / "no" / "a"
    with pytest.raises(FileNotFoundError) as refusal:
        action(path)
    assert refusal.value.filename == str(path)
    assert refusal.value.strerror == f"cannot write: there is no folder {tmp_path / 'no'}"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        check_writable(tmp_path)
