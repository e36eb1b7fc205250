"""Functional coverage: which situations of the instruction set and the machine have been tested.

A *bin* is a situation: an instruction of a kind with these flags, one whose data came late while
its command queue was full, and so on. ``GROUPS`` lists every bin that can be reached;
``Coverage.observe`` finds the bins of one launch, from its instructions and from what the RTL says
about the cycles of each (``vta_isa.launch.Places``). Runs collect into files of a folder, which
``coverage_report`` adds up. Only ``vta_isa`` is used: the RTL is not asked what it thinks it did.
"""

import json
import os
import secrets
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vta_isa.counters import CAUSE_COUNTERS
from vta_isa.enums import AluOp, Buffer, FusedOp, Opcode, Stage
from vta_isa.insn import FLAGS
from vta_isa.launch import Places

FOLDER_VARIABLE = "VTA_COVERAGE_DIR"  # where runs collect; nowhere if it is not set

Bin = tuple[str, ...]  # group, row, and what it crosses

# ---- kinds of instruction ------------------------------------------------------------------------

LOADS = tuple(f"LOAD {buffer.name}" for buffer in Buffer if buffer != Buffer.OUT)
TO_LOAD = ("LOAD INP", "LOAD WGT")
ALU_KINDS = tuple(f"{op.name}{operand}" for op in AluOp for operand in ("", " imm"))
EXTENDED = ("GEMM overwrite", "REQUANTIZE", "REQUANTIZE bias")
LOOPS = ("GEMM", "GEMM reset", *ALU_KINDS, *EXTENDED)
KINDS: dict[str, Stage] = {
    **{kind: Stage.LOAD if kind in TO_LOAD else Stage.COMPUTE for kind in LOADS},
    "STORE OUT": Stage.STORE,
    **dict.fromkeys(LOOPS, Stage.COMPUTE),
    "FINISH": Stage.COMPUTE,
    **{f"no-op {stage.name.lower()}": stage for stage in Stage},
}
MOVES = (*LOADS, "STORE OUT")

# The flags with a token queue behind them.
CONNECTED = {
    Stage.LOAD: ("pop_next", "push_next"),
    Stage.COMPUTE: FLAGS,
    Stage.STORE: ("pop_prev", "push_prev"),
}
SIDES = ("y_pad_before", "y_pad_after", "x_pad_before", "x_pad_after")
NEIGHBOUR = {  # what a stage can wait for: the stage of the flag
    (Stage.LOAD, "pop_next"): "compute",
    (Stage.COMPUTE, "pop_prev"): "load",
    (Stage.COMPUTE, "pop_next"): "store",
    (Stage.STORE, "pop_prev"): "compute",
}
FULL_QUEUES = {  # a push that is held up, by the flag if it is the only one
    Stage.LOAD: ("push_next",),
    Stage.COMPUTE: ("push_prev", "push_next"),
    Stage.STORE: ("push_prev",),
}
CHANNELS = ("AR", "AW", "W")
IMMEDIATES = {
    "lowest": (-(1 << 15), -(1 << 15)),
    "below -31": (-(1 << 15) + 1, -32),
    "-31..-1": (-31, -1),
    "0": (0, 0),
    "1..31": (1, 31),
    "above 31": (32, (1 << 15) - 2),
    "highest": ((1 << 15) - 1, (1 << 15) - 1),
}
EXTENTS = ("none", "one", "uops", "inner", "outer")
EXTENTS += ("uops and inner", "uops and outer", "inner and outer", "all three")
TOKENS = ("no token", "pops", "pushes", "pops and pushes")
YES_NO = ("no", "yes")


def _flag_sets(stage: Stage) -> Iterator[str]:
    for bits in product((0, 1), repeat=len(CONNECTED[stage])):
        yield _flags(f for f, bit in zip(CONNECTED[stage], bits, strict=True) if bit)


def _flags(names: Iterator[str]) -> str:
    return " ".join(names) or "none"


def _sides(names: Iterator[str]) -> str:
    return " ".join(name.replace("_pad", "") for name in names) or "none"


def groups() -> dict[str, list[Bin]]:
    """Every bin there is, by what it is about."""
    found: dict[str, list[Bin]] = {
        "instruction x flags": [
            (kind, flags) for kind, stage in KINDS.items() for flags in _flag_sets(stage)
        ],
        "load x sides padded": [
            (kind, _sides(s for s, bit in zip(SIDES, bits, strict=True) if bit))
            for kind in LOADS
            for bits in product((0, 1), repeat=len(SIDES))
        ],
        "load x shape": [
            (kind, shape)
            for kind in LOADS
            for shape in ("one entry", "one row", "rows", "padding only", "nothing", "widest pad")
        ],
        "move x stride": [
            (kind, stride)
            for kind in MOVES
            for stride in ("rows apart", "side by side", "overlapping", "all the same")
        ],
        "instruction x command queue full": [(kind, "full") for kind in KINDS],
        "instruction x token queue full": [
            (kind, f"{flag} held up")
            for kind, stage in KINDS.items()
            for flag in FULL_QUEUES[stage]
        ],
        "instruction x waits for a token of": [
            (kind, NEIGHBOUR[stage, flag])
            for kind, stage in KINDS.items()
            for flag in CONNECTED[stage]
            if flag.startswith("pop")
        ],
        # While a STORE has to wait for AW or W, no other instruction of its stage runs.
        "instruction x channel held up": [
            (kind, channel)
            for kind in KINDS
            for channel in (CHANNELS if kind != "no-op store" else ("AR",))
        ],
        "move x data or answer late": [(kind, "late") for kind in MOVES],
        "ALU operation x immediate": [(op.name, name) for op in AluOp for name in IMMEDIATES],
        "loop x iterations": [(kind, extent) for kind in LOOPS for extent in EXTENTS],
        "instruction x tokens x padded x queue full x back-pressure": [
            (kind, *rest)
            for kind in KINDS
            for rest in product(TOKENS, YES_NO if kind in LOADS else ("no",), YES_NO, YES_NO)
        ],
    }
    return found


GROUPS = groups()


# ---- what a launch has shown ---------------------------------------------------------------------


class Coverage:
    """How often each bin was hit."""

    def __init__(self) -> None:
        self.hits: Counter[tuple[str, Bin]] = Counter()
        self._file = f"{secrets.token_hex(8)}.json"

    def observe(self, table: NDArray[np.void], places: Places) -> None:
        """A launch: ``table (n,) INSN_DTYPE`` and what its instructions spent cycles on."""
        names = {name: column for column, name in enumerate(CAUSE_COUNTERS)}
        for number, row in enumerate(table):
            kind = kind_of(row)
            causes = places.causes[number]
            spent = {name: int(causes[column]) for name, column in names.items()}
            stalled = [bool(cycles) for cycles in places.stalled[number]]
            for group, bins in self._bins(kind, row, spent, stalled):
                for one in bins:
                    self.hits[group, (kind, *one)] += 1
            if kind.endswith(" imm"):
                for name, (low, high) in IMMEDIATES.items():
                    if low <= row["imm"] <= high:
                        bin_ = (kind.removesuffix(" imm"), name)
                        self.hits["ALU operation x immediate", bin_] += 1

    def _bins(
        self, kind: str, row: np.void, spent: dict[str, int], stalled: list[bool]
    ) -> Iterator[tuple[str, list[Bin]]]:
        """Group, and the bins of the instruction in it, without its kind."""
        stage = KINDS[kind]
        prefix = stage.name.lower()
        flags = [flag for flag in CONNECTED[stage] if row[flag]]
        yield "instruction x flags", [(_flags(iter(flags)),)]
        sides = [side for side in SIDES if row[side]]
        if kind in LOADS:
            yield "load x sides padded", [(_sides(iter(sides)),)]
            yield "load x shape", [(shape,) for shape in _shapes(row)]
        if kind in MOVES and row["y_size"] > 1:
            yield "move x stride", [(_stride(row),)]
        queue_full = spent["fetch_wait_queue_full"] > 0
        token_full = spent[f"{prefix}_wait_token_full"] > 0
        if queue_full:
            yield "instruction x command queue full", [("full",)]
        pushes = [flag for flag in flags if flag.startswith("push")]
        if token_full and len(pushes) == 1:
            yield "instruction x token queue full", [(f"{pushes[0]} held up",)]
        waits = [
            (NEIGHBOUR[stage, flag],)
            for flag in flags
            if flag.startswith("pop") and spent[f"{prefix}_wait_{NEIGHBOUR[stage, flag]}"]
        ]
        yield "instruction x waits for a token of", waits
        held = [(name,) for name, cycles in zip(CHANNELS, stalled, strict=True) if cycles]
        yield "instruction x channel held up", held
        if kind in MOVES and spent[f"{prefix}_wait_dram"]:
            yield "move x data or answer late", [("late",)]
        if kind in LOOPS:
            yield "loop x iterations", [(_extent(row),)]
        pops = len(pushes) < len(flags)
        cross = (
            TOKENS[pops + 2 * bool(pushes)],
            YES_NO[bool(sides) and kind in LOADS],
            YES_NO[queue_full or token_full],
            YES_NO[any(stalled)],
        )
        yield "instruction x tokens x padded x queue full x back-pressure", [cross]

    def unknown(self) -> list[tuple[str, Bin]]:
        """Bins that were hit and are not in the list: a mistake in one of the two."""
        return [(group, bin_) for group, bin_ in self.hits if bin_ not in _SETS[group]]

    def holes(self) -> dict[str, list[Bin]]:
        """Bins that were never hit, by group."""
        return {
            group: [bin_ for bin_ in bins if not self.hits[group, bin_]]
            for group, bins in GROUPS.items()
        }

    # ---- files ----------------------------------------------------------------------------------

    def save(self) -> None:
        """Into a file of its own in the folder where runs collect; the same one every time."""
        folder = Path(os.environ[FOLDER_VARIABLE])
        folder.mkdir(parents=True, exist_ok=True)
        rows = [[group, list(bin_), count] for (group, bin_), count in self.hits.items()]
        (folder / self._file).write_text(json.dumps(rows))

    def add(self, folder: Path) -> None:
        """Everything that runs have collected in a folder."""
        for path in sorted(folder.glob("*.json")):
            for group, bin_, count in json.loads(path.read_text()):
                self.hits[group, tuple(bin_)] += count


_SETS = {group: frozenset(bins) for group, bins in GROUPS.items()}


def wanted() -> bool:
    """Whether runs are to collect."""
    return bool(os.environ.get(FOLDER_VARIABLE))


def kind_of(row: np.void) -> str:
    """The name in ``KINDS`` of one decoded instruction."""
    match int(row["opcode"]):
        case Opcode.LOAD if _moves_nothing(row):
            stage = Stage.LOAD if row["buffer"] in (Buffer.INP, Buffer.WGT) else Stage.COMPUTE
            return f"no-op {stage.name.lower()}"
        case Opcode.LOAD:
            return f"LOAD {Buffer(int(row['buffer'])).name}"
        case Opcode.STORE:
            return "no-op store" if row["x_size"] == 0 else "STORE OUT"
        case Opcode.GEMM:
            return (
                "GEMM reset" if row["reset"] else ("GEMM overwrite" if row["overwrite"] else "GEMM")
            )
        case Opcode.ALU if row["alu_op"] == FusedOp.REQUANTIZE:
            return "REQUANTIZE" if row["use_imm"] else "REQUANTIZE bias"
        case Opcode.ALU:
            return AluOp(int(row["alu_op"])).name + (" imm" if row["use_imm"] else "")
    return "FINISH"


def _moves_nothing(row: np.void) -> bool:
    return bool(row["x_size"] == 0)


def _shapes(row: np.void) -> Iterator[str]:
    padded = any(row[side] for side in SIDES)
    if row["y_size"] == 0:
        yield "padding only" if padded else "nothing"
    elif row["y_size"] == 1:
        yield "one entry" if row["x_size"] == 1 and not padded else "one row"
    else:
        yield "rows"
    if any(row[side] == 15 for side in SIDES):
        yield "widest pad"


def _stride(row: np.void) -> str:
    stride, size = int(row["x_stride"]), int(row["x_size"])
    if stride == 0:
        return "all the same"
    if stride < size:
        return "overlapping"
    return "side by side" if stride == size else "rows apart"


def _extent(row: np.void) -> str:
    uops = int(row["uop_end"]) - int(row["uop_begin"])
    outer, inner = int(row["iter_out"]), int(row["iter_in"])
    if uops <= 0 or not outer or not inner:
        return "none"
    more = [name for name, n in (("uops", uops), ("inner", inner), ("outer", outer)) if n > 1]
    if len(more) == 2:
        return " and ".join(more)
    return {0: "one", 3: "all three"}.get(len(more)) or more[0]
