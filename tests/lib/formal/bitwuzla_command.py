"""The Bitwuzla library as a solver on a pipe: SMT-LIB in, answers out, as smtbmc wants it."""

import sys
from collections.abc import Iterator

import bitwuzla


def commands(lines: Iterator[str]) -> Iterator[str]:
    """Each command of an SMT-LIB text, as soon as its last bracket has come."""
    parts: list[str] = []
    depth, in_symbol, in_string = 0, False, False
    for line in lines:
        if depth == 0 and line.startswith(";"):
            continue
        for letter in line:
            if in_string:
                in_string = letter != '"'
            elif letter == "|":
                in_symbol = not in_symbol
            elif in_symbol:
                pass
            elif letter == '"':
                in_string = True
            elif letter in "()":
                depth += 1 if letter == "(" else -1
        parts.append(line)
        if depth == 0 and line.strip():
            yield "".join(parts).strip()
            parts = []


def main() -> None:
    if "--help" in sys.argv:
        print("usage: bitwuzla [--lang smt2]")
        return
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    for command in commands(sys.stdin):
        # The parser forgets these from one call to the next, the solver does not.
        if command.startswith("(push"):
            parser.bitwuzla().push(int(command[5:-1] or 1))
        elif command.startswith("(pop"):
            parser.bitwuzla().pop(int(command[4:-1] or 1))
        elif command.startswith("(exit"):
            break
        elif not command.startswith("(set-option"):
            parser.parse(command, False, False)
            if command.startswith(("(check", "(get")):
                sys.stdout.flush()


if __name__ == "__main__":
    main()
