"""What a file of waves says, read independently of what wrote it."""

from pathlib import Path

# Of each signal, by its full name: its width, and every (time, value) at which it changes.
Signals = dict[str, tuple[int, list[tuple[int, str]]]]


def read_vcd(path: Path) -> Signals:
    """The slow and obvious way: one pass, values as they are, repeated ones dropped."""
    scope: list[str] = []
    signals: Signals = {}
    names: dict[str, list[str]] = {}
    now = 0
    for line in path.read_text().splitlines():
        words = line.split()
        if not words or words[0] in ("$version", "$timescale", "$enddefinitions"):
            continue
        if words[0] == "$scope":
            scope.append(words[2])
        elif words[0] == "$upscope":
            scope.pop()
        elif words[0] == "$var":
            name = ".".join([*scope, " ".join(words[4:-1])])
            signals[name] = int(words[2]), []
            names.setdefault(words[3], []).append(name)
        elif line[0] == "#":
            now = int(line[1:])
        else:
            value, code = words if line[0] == "b" else (line[0], line[1:])
            for name in names[code]:
                width, changes = signals[name]
                text = value.removeprefix("b").zfill(width)
                if not changes or changes[-1][1] != text:
                    changes.append((now, text))
    return signals


def read_fst(path: Path) -> Signals:
    """By pylibfst; as ``read_vcd``."""
    import pylibfst

    file = pylibfst.lib.fstReaderOpen(str(path).encode())
    assert file != pylibfst.ffi.NULL, f"{path} is no FST file"
    try:
        _, found = pylibfst.get_scopes_signals2(file)
        changes: dict[int, list[tuple[int, str]]] = {handle: [] for handle in found.by_handle}

        def change(_, time, handle, value):
            text = pylibfst.string(value)
            if not changes[handle] or changes[handle][-1][1] != text:
                changes[handle].append((time, text))

        pylibfst.lib.fstReaderSetFacProcessMaskAll(file)
        pylibfst.fstReaderIterBlocks(file, change)
        return {
            name: (signal.length, changes[signal.handle]) for name, signal in found.by_name.items()
        }
    finally:
        pylibfst.lib.fstReaderClose(file)
