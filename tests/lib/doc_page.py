"""A page of documentation as a program: its files are written, its commands run, outputs compared.

What a fenced block means follows from its first line:

- a language and ``title="a/file.yaml"``: that file, written before what follows it;
- ``diff`` and a title: a change to that file, where the page works on the sources;
- ``console``: lines after ``$`` are commands, the lines below them what they print. ``...`` stands
  for anything, as in doctest; times, sizes in lists of files, the number of tests that pass, and
  blank lines are not compared. With ``{.console .fails}`` the commands must fail, and what they
  print on standard error counts too. ``{.console .slow}`` runs where slow blocks are asked for;
- ``pycon``: a doctest.

Anything else is for reading. A page runs from top to bottom in one folder, which is empty at first.

    python tests/lib/doc_page.py docs/start.md ...    # writes outputs that have changed into pages
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("vta", "vta_isa", "vta_hw", "simulator", "vta_runtime", "compiler")
COLUMNS = 100

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]+)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_VARIES = re.compile(
    r"\b\d+(?:\.\d+)?( ?(?:ms|s|min|seconds|minutes))\b"  # a time
    r"|\b[\d,]+( bytes  )"  # of a file, in a list of files
    r"|^[.s]+ +(\[ *\d+%\])$"  # progress of pytest
    r"|\b\d+( passed| deselected)\b",  # its tests, which are more on some hosts
    re.MULTILINE,
)
_ANYTHING = re.compile(r"(?<!\.)\.\.\.(?!\.)")  # longer runs are the progress of pytest
_DOCTEST = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One fenced block: where its text lies in the page, and what its first line says."""

    language: str
    classes: frozenset[str]
    title: str
    body: str
    start: int
    end: int
    line: int


@dataclass(frozen=True)
class Command:
    """One command of a console block and what the page says that it prints."""

    text: str
    expected: str


class PageError(AssertionError):
    """Something on a page is not so; says where, what, and what to do."""


def blocks(page: str) -> list[Block]:
    """Every fenced block of a page, in order."""
    found = []
    for match in _FENCE.finditer(page):
        language, *_ = re.findall(r"[\w-]+", match["info"])
        title = re.search(r'title="([^"]*)"', match["info"])
        found.append(
            Block(
                language,
                frozenset(re.findall(r"\.([\w-]+)", match["info"].partition("title=")[0])),
                title[1] if title else "",
                match["body"],
                match.start("body"),
                match.end("body"),
                page.count("\n", 0, match.start()) + 1,
            )
        )
    return found


def commands(body: str) -> list[Command]:
    """The commands of a console block; a line that ends with a backslash goes on in the next."""
    found: list[Command] = []
    lines = iter(body.splitlines())
    for line in lines:
        if line.startswith("$ "):
            text = line[2:]
            while text.endswith("\\"):
                text += "\n" + next(lines)
            found.append(Command(text, ""))
        elif found:
            last = found.pop()
            found.append(Command(last.text, f"{last.expected}{line}\n"))
        elif line.strip():
            raise PageError(f"{line!r} is printed before any command; begin with `$ `")
    return found


def same_output(expected: str, got: str) -> bool:
    """Whether both are equal but for what varies, blank lines, and what ``...`` stands for."""
    want, have = (_VARIES.sub(r"0\1\2\3\4", _tidy(text)) for text in (expected, got))
    first, *rest = _ANYTHING.split(want)
    if not rest:
        return want == have
    *middle, last = rest
    if not have.startswith(first):
        return False
    position = len(first)
    for piece in middle:  # the earliest place leaves most for those behind
        position = have.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return have.endswith(last) and position + len(last) <= len(have)


def run_page(path: Path, folder: Path, *, slow: bool = False) -> str:
    """Run a page in the empty ``folder``; its text with the outputs as they are now.

    A page of ``docs/howto`` changes sources: there the folder holds a copy of the checkout, and
    everything runs from it. Raises PageError where a command ends otherwise than the page says, or
    a change does not fit. Outputs that differ are no error here: compare the text.
    """
    page = path.read_text(encoding="utf-8")
    sources = copy_of_sources(folder) if path.parent.name == "howto" else ROOT
    environment = _environment(folder, sources)
    pieces, position = [], 0
    for block in blocks(page):
        where = f"{path.name}, line {block.line}"
        pieces.append(page[position : block.start])
        position = block.end
        body = block.body
        if block.language == "console" and (slow or "slow" not in block.classes):
            body = _run_console(block, where, folder, environment)
        elif block.language == "pycon":
            _run_doctest(block, where, folder, environment)
        elif block.title and block.language == "diff":
            _apply(block, where, folder)
        elif block.title:
            target = folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.body, encoding="utf-8")
        pieces.append(body)
    return "".join([*pieces, page[position:]])


def check_page(path: Path, folder: Path, *, slow: bool = False) -> None:
    """Raise PageError, with both texts, at the first output that is not what the page says."""
    now = run_page(path, folder, slow=slow)
    page = path.read_text(encoding="utf-8")
    for old, new in zip(blocks(page), blocks(now), strict=True):
        if old.body != new.body:
            raise PageError(
                f"{path.name}, line {old.line}: the page says\n{old.body}\nand it is\n{new.body}\n"
                f"If that is right: python tests/lib/doc_page.py {path.relative_to(ROOT)}"
            )


def copy_of_sources(folder: Path) -> Path:
    """What a change may touch, in ``folder``: packages, presets, tests and pages."""
    for name in (*PACKAGES, "configs", "tests", "docs"):
        ignored = shutil.ignore_patterns("__pycache__", "vectors")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _environment(folder: Path, sources: Path) -> dict[str, str]:
    """``vta`` and ``python`` are those of the sources; output is plain text of a known width."""
    programs = folder / ".bin"
    programs.mkdir(exist_ok=True)
    python = shlex.quote(sys.executable)
    for name, arguments in {
        "vta": "-c 'import sys; from vta.cli import main; sys.exit(main())'",
        "python": "",
    }.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {python} {arguments} "$@"\n')
        program.chmod(0o755)
    return os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(sources),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
        # Compiling the timing engine of a copy takes longer than running it as it is.
        **({} if sources == ROOT else {"NUMBA_DISABLE_JIT": "1"}),
    }


def _run_console(block: Block, where: str, folder: Path, environment: dict[str, str]) -> str:
    lines = []
    for command in commands(block.body):
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=1800,
        )
        fails = "fails" in block.classes
        if fails != (done.returncode != 0):
            said = f"{done.stdout}{done.stderr}".strip()
            raise PageError(f"{where}: `{command.text}` ended with {done.returncode}:\n{said}")
        got = done.stdout + (done.stderr if fails else "")
        kept = command.expected if same_output(command.expected, got) else f"{_tidy(got)}\n"
        lines.append(f"$ {command.text}\n{kept if kept.strip() else ''}")
    return "".join(lines)


def _run_doctest(block: Block, where: str, folder: Path, environment: dict[str, str]) -> None:
    """In a process of its own, so that it imports from the sources of the page."""
    script = folder / ".doctest.py"
    script.write_text(
        "import doctest, sys\n"
        f"test = doctest.DocTestParser().get_doctest({block.body!r}, {{}}, {where!r}, None, 0)\n"
        f"runner = doctest.DocTestRunner(optionflags={_DOCTEST})\n"
        "sys.exit(bool(runner.run(test).failed))\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise PageError(f"{where}: {done.stdout}{done.stderr}")


def _apply(block: Block, where: str, folder: Path) -> None:
    """Change a file. Hunks are told apart by ``@@`` lines and found by what they replace."""
    target = folder / block.title
    text = target.read_text(encoding="utf-8")
    for hunk in re.split(r"^@@.*\n", block.body, flags=re.MULTILINE):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] or "\n" for line in lines if not line.startswith("+"))
        new = "".join(line[1:] or "\n" for line in lines if not line.startswith("-"))
        if not lines:
            continue
        if text.count(old) != 1:
            raise PageError(
                f"{where}: {block.title} holds this {text.count(old)} times, not once:\n{old}"
            )
        text = text.replace(old, new)
    target.write_text(text, encoding="utf-8")


def _tidy(text: str) -> str:
    """Without spaces at the ends of lines, and without blank lines."""
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def main(names: list[str]) -> None:
    """Run these pages, slow blocks too, and write outputs that have changed into them."""
    for name in names:
        path = Path(name)
        with tempfile.TemporaryDirectory() as scratch:
            now = run_page(path, Path(scratch), slow=True)
        changed = now != path.read_text(encoding="utf-8")
        path.write_text(now, encoding="utf-8")
        print(f"{path}: {'outputs changed' if changed else 'as it was'}")


if __name__ == "__main__":
    main(sys.argv[1:])
