"""Answers to a misspelt word: the known word that was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word closest to `word`, or None where none is close; case does not count."""
    by_lower = {name.lower(): name for name in known}
    matches = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'? known: x, y``: the end of a message, with the guess if there is one."""
    names = list(known)
    if not names:
        return ""
    guess = nearest(word, names)
    question = f"; did you mean {guess!r}?" if guess is not None else ";"
    return f"{question} known: {', '.join(names)}"
