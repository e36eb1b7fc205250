"""``--waves FILE --cycles FIRST:END`` as a value."""

from pathlib import Path

import typer

_ALL_CYCLES = 1 << 62


def wave_window(waves: Path | None, cycles: str | None) -> tuple[Path, int, int] | None:
    """File, first cycle and the one behind the last; of ``100:200`` either may be left out."""
    from ..files import check_writable

    if waves is None:
        if cycles is not None:
            raise typer.BadParameter("--cycles says what --waves saves; add --waves FILE.")
        return None
    try:
        first, end = (cycles or ":").split(":")
        window = int(first or 0), int(end or _ALL_CYCLES)
    except ValueError:
        raise typer.BadParameter(f"--cycles {cycles} is no window; write 100:200.") from None
    if not 0 <= window[0] < window[1] <= _ALL_CYCLES:
        raise typer.BadParameter(
            f"--cycles {cycles} is empty; write 100:200 for cycles 100 to 199."
        )
    check_writable(waves)
    return waves, *window
