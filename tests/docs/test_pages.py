"""The pages that show commands: each is run from top to bottom, and prints what it says."""

from pathlib import Path

import pytest
from doc_page import ROOT, Command, PageError, blocks, check_page, commands, run_page, same_output

PAGES = sorted(
    path
    for pattern in (
        "README.md",
        "docs/start.md",
        "docs/machine.md",
        "docs/walkthroughs/*.md",
        "docs/howto/*.md",
    )
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_prints_what_it_says(path: Path, tmp_path: Path) -> None:
    check_page(path, tmp_path)


def test_there_are_pages() -> None:
    assert len(PAGES) > 5


def page(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "page.md"
    path.write_text(text)
    (tmp_path / "run").mkdir()
    return path


def test_files_are_written_and_outputs_corrected(tmp_path: Path) -> None:
    path = page(
        tmp_path,
        '```yaml title="deep/a.txt"\none\ntwo\n```\n\n```console\n$ cat deep/a.txt\none\nthree\n'
        "$ wc -l \\\n  deep/a.txt\n2 deep/...\n```\nEnd.\n",
    )

    now = run_page(path, tmp_path / "run")

    assert now == path.read_text().replace("three", "two")


def test_a_command_that_fails_is_no_output(tmp_path: Path) -> None:
    path = page(tmp_path, "One.\n```console\n$ echo so; false\nso\n```\n")

    with pytest.raises(PageError, match=r"line 2: `echo so; false` ended with 1:\nso"):
        run_page(path, tmp_path / "run")


def test_a_command_that_should_fail_must(tmp_path: Path) -> None:
    text = "```{.console .fails}\n$ echo what >&2; exit 3\nwhat\n```\n"
    path = page(tmp_path, text)

    assert run_page(path, tmp_path / "run") == text

    path.write_text(text.replace("; exit 3", ""))
    with pytest.raises(PageError, match="ended with 0"):
        run_page(path, tmp_path / "run")


def test_slow_blocks_run_where_they_are_asked_for(tmp_path: Path) -> None:
    path = page(tmp_path, "```{.console .slow}\n$ echo new\nold\n```\n")

    assert "old" in run_page(path, tmp_path / "run")
    assert "old" not in run_page(path, tmp_path / "run", slow=True)


@pytest.mark.parametrize(
    ("body", "why"), [(">>> 1 + 1\n3\n", "Expected"), (">>> nothing\n1\n", "NameError")]
)
def test_a_doctest_that_fails_is_shown(tmp_path: Path, body: str, why: str) -> None:
    path = page(tmp_path, f"```pycon\n{body}```\n")

    with pytest.raises(PageError, match=why):
        run_page(path, tmp_path / "run")


def test_changes_are_made_where_they_fit(tmp_path: Path) -> None:
    path = page(
        tmp_path,
        '```text title="f"\na\nb\nc\nb\n```\n'
        '```diff title="f"\n a\n-b\n+B\n c\n@@\n c\n b\n+d\n```\n'
        "```console\n$ cat f\na\nB\nc\nb\nd\n```\n",
    )

    assert run_page(path, tmp_path / "run") == path.read_text()


@pytest.mark.parametrize(("hunk", "times"), [("-b\n+B\n", 2), ("-x\n+y\n", 0)])
def test_a_change_that_fits_not_once_is_refused(tmp_path: Path, hunk: str, times: int) -> None:
    path = page(tmp_path, f'```text title="f"\na\nb\nb\n```\n```diff title="f"\n{hunk}```\n')

    with pytest.raises(PageError, match=f"holds this {times} times"):
        run_page(path, tmp_path / "run")


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        ("", "", True),
        ("a\n\n b \n", "a\n b\n", True),
        ("took 3.2 s", "took 11.75 s", True),
        ("took 3.2 s", "took 11.75 MHz", False),
        ("  674,518 bytes  rtl/vta.v", "  5 bytes  rtl/vta.v", True),
        ("674,518 bytes of DRAM", "5 bytes of DRAM", False),
        ("12 cycles", "13 cycles", False),
        ("a ... d", "a b\nc d", True),
        ("a ... d", "a b c", False),
        ("a ... c ... e", "a b c d e", True),
        ("a ... c ... e", "a c e", False),
        ("a ... e", "a e", False),
        ("..... [100%]\n5 passed in 1.2s", ".... [100%]\n4 passed in 3s", True),
        ("..... [100%]", "..F.. [100%]", False),
        ("5 passed in 1s", "1 failed, 4 passed in 1s", False),
        ("..... and", ".... and", False),
        ("." * 90 + " 1", "." * 90 + " 2", False),
        ("1+1 (a|b)", "1+1 (a|b)", True),
    ],
)
def test_what_counts_as_the_same_output(expected: str, got: str, same: bool) -> None:
    assert same_output(expected, got) is same


def test_blocks_and_commands_are_found() -> None:
    text = 'x\n```{.console .slow title="t.sh"}\n$ a\nb\n$ c\n```\n\n```python\nd\n```\n'

    first, second = blocks(text)

    assert (first.language, first.classes, first.title) == (
        "console",
        {"console", "slow"},
        "t.sh",
    )
    assert (first.line, second.language, second.body) == (2, "python", "d\n")
    assert commands(first.body) == [Command("a", "b\n"), Command("c", "")]
