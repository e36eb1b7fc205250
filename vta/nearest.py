"""The name that was probably meant."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for a near miss, else the list of what there is."""
    choices = list(known)
    # Case is ignored: `c2` for `C2` is the commonest slip.
    folded = {choice.casefold(): choice for choice in reversed(choices)}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    return f"known are {', '.join(choices)}" if choices else "there is none"
