"""Streams made to bring about what random programs seldom do: full queues, late tokens, any flags.

A stream is a row of *scenes*. In a scene one stage executes instructions of any kind with any
flags, while its neighbours, who should take its tokens, are busy with something long. Memories are
split: what loads write is read by nobody, and what GEMM and ALU work on is written by nobody else,
so that results do not depend on who is faster. A scene has as many tokens as its queues can hold
and as its stage can keep waiting, never more, and leaves none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from functional_coverage import ALU_KINDS, CONNECTED, IMMEDIATES, KINDS, LOADS
from programs import Program
from tokens import Fields

from vta_isa.encoding import encode_stream, encode_uops
from vta_isa.enums import AluOp, Buffer, FusedOp, LowKind, Stage
from vta_isa.insn import FLAGS, alu, finish, gemm, load, noop, records, requantize, store
from vta_isa.machine import Machine

UOPS = 16  # micro-ops that loops use; LOAD UOP writes behind them
APART = 4  # micro-ops behind them, whose dst are different and whose src nobody writes
INDICES = 8  # entries that they name
PLAYERS = 24  # pairs of a kind and flags in a program
STRIDE = 16  # entries between the rows of a long STORE
CAST = 2  # of them at most in a scene

Player = tuple[str, tuple[str, ...]]  # a kind of instruction, and its flags

# The queue between a stage and the neighbour behind a flag: whose noop takes or gives the token.
OTHER_END = {
    (Stage.LOAD, "pop_next"): (Stage.COMPUTE, "push_prev"),
    (Stage.LOAD, "push_next"): (Stage.COMPUTE, "pop_prev"),
    (Stage.COMPUTE, "pop_prev"): (Stage.LOAD, "push_next"),
    (Stage.COMPUTE, "pop_next"): (Stage.STORE, "push_prev"),
    (Stage.COMPUTE, "push_prev"): (Stage.LOAD, "pop_next"),
    (Stage.COMPUTE, "push_next"): (Stage.STORE, "pop_prev"),
    (Stage.STORE, "pop_prev"): (Stage.COMPUTE, "push_next"),
    (Stage.STORE, "push_prev"): (Stage.COMPUTE, "pop_next"),
}


def kinds_of(machine: Machine) -> list[str]:
    """Every kind of instruction that the machine has, FINISH excepted."""
    added = machine.extensions
    without = {"FINISH"}
    if not added.gemm_overwrite:
        without.add("GEMM overwrite")
    if not added.alu_requantize:
        without |= {"REQUANTIZE", "REQUANTIZE bias"}
    return [kind for kind in KINDS if kind not in without]


def players(machine: Machine) -> list[Player]:
    """Every kind of instruction with every set of flags, well mixed."""
    pairs = [
        (kind, tuple(flag for flag, bit in zip(flags, bits, strict=True) if bit))
        for kind in kinds_of(machine)
        for flags in (CONNECTED[KINDS[kind]],)
        for bits in product((0, 1), repeat=len(flags))
    ]
    return [pairs[i] for i in np.random.default_rng(0).permutation(len(pairs))]


def situation_program(rng: np.random.Generator, machine: Machine, number: int) -> Program:
    """Scenes of every stage, and a FINISH. For machines with short queues.

    Programs ``number``, ``number`` + 1, ... let the players take turns, PLAYERS in each, and
    FINISH its flags.
    """
    pairs = players(machine)
    turns = [pairs[(number * PLAYERS + i) % len(pairs)] for i in range(PLAYERS)]
    author = _Author(rng, machine)
    author.fill()
    while turns:
        stage = KINDS[turns[0][0]]
        cast = [player for player in turns if KINDS[player[0]] == stage][:CAST]
        turns = [player for player in turns if player not in cast]
        author.scene(stage, cast)
    author.end([flag for bit, flag in enumerate(FLAGS) if number >> bit & 1])
    table = records(author.insns)
    return Program(encode_stream(table, machine), author.dram, machine, table)


@dataclass
class _Author:
    rng: np.random.Generator
    machine: Machine

    def __post_init__(self) -> None:
        machine = self.machine
        self.insns: list[Fields] = []
        self.half = {buffer: machine.depth(buffer) // 2 for buffer in Buffer}
        largest = max(machine.entry_bytes(b) * machine.depth(b) for b in Buffer)
        self.written = 4096 + largest  # bytes of DRAM; STOREs write behind
        out = machine.entry_bytes(Buffer.OUT) * (self.half[Buffer.OUT] + 2) * STRIDE
        self.dram = self.rng.integers(0, 256, self.written + out, dtype=np.uint8)
        # Loops stay in the first quarter of ACC, and in the first half of INP and WGT.
        self.loops = min(self.half[Buffer.INP], self.half[Buffer.WGT], self.half[Buffer.ACC] // 2)
        uops = self.rng.integers(0, min(INDICES, self.loops), (machine.depth(Buffer.UOP), 3))
        apart = slice(UOPS, UOPS + APART)
        uops[apart, 0] = np.arange(APART)
        uops[apart, 1] = self.half[Buffer.ACC] + np.arange(APART)
        words = encode_uops(uops, machine).astype("<u4").view(np.uint8)
        self.dram[: len(words)] = words

    # ---- scenes ---------------------------------------------------------------------------------

    def fill(self) -> None:
        """Every memory, before anything else happens."""
        for buffer in (Buffer.UOP, Buffer.ACC, Buffer.INP, Buffer.WGT):
            self.insns.append(
                load(buffer, sram_base=0, dram_base=0, x_size=self.machine.depth(buffer))
            )
        self.insns[-1]["push_next"] = 1
        self.insns += [
            noop(Stage.COMPUTE, pop_prev=True, push_prev=True, push_next=True),
            noop(Stage.LOAD, pop_next=True),
            noop(Stage.STORE, pop_prev=True),
        ]

    def scene(self, stage: Stage, cast: list[Player]) -> None:
        """A row of instructions of one stage, the cast in turns; the neighbours are busy."""
        queues = self.machine.queues
        supply: list[Fields] = []
        drain: list[Fields] = []
        actors: list[Fields] = []
        left = dict.fromkeys(CONNECTED[stage], queues.token)
        star = self._pick(cast)
        count = int(self.rng.integers(len(cast), queues.command + queues.token + 1, 2).max())
        for number in range(count):
            kind, flags = cast[number] if number < len(cast) else star
            actor = self.make(kind)
            for flag in flags:
                other, end = OTHER_END[stage, flag]
                if flag.startswith("push"):
                    drain.append(noop(other, **{end: True}))
                elif left[flag]:
                    left[flag] -= 1
                    supply.append(noop(other, **{end: True}))
                else:
                    continue
                actor[flag] = 1
            actors.append(actor)
        neighbours = sorted({OTHER_END[stage, flag][0] for flag in CONNECTED[stage]})
        busy = [b for n in neighbours if self._chance(0.8) for b in self.blockers(n)]
        ahead = self.blockers(stage) if self._chance(0.5) else []
        # Whatever is popped is pushed before, however late, and what is pushed is popped behind:
        # dispatch is in order and must not be held up by what waits for it.
        late = self._chance(0.5)
        self.insns += [*([] if late else supply), *ahead, *busy, *(supply if late else [])]
        self.insns += [*actors, *drain, *self._fences()]

    def end(self, flags: list[str]) -> None:
        """FINISH, in a scene of its own; what it pushes is left in the queues."""
        token = self.machine.queues.token
        for flag in flags:
            other, end = OTHER_END[Stage.COMPUTE, flag]
            if flag.startswith("pop"):
                late = self.blockers(other) if self._chance(0.5) else []
                self.insns += [*late, noop(other, **{end: True})]
            else:
                ahead = [noop(Stage.COMPUTE, **{flag: True}) for _ in range(token)]
                long = self.blockers(other)[:1] if self._chance(0.7) else []
                self.insns += [*long, *ahead, *(noop(other, **{end: True}) for _ in ahead)]
        if self._chance(0.7):
            self.insns += self.blockers(Stage.COMPUTE)
            self.insns += [noop(Stage.COMPUTE) for _ in range(self.machine.queues.command)]
        if self._chance(0.7):
            self.insns += self.blockers(Stage.STORE)
        if self._chance(0.7):
            self.insns += self.blockers(Stage.LOAD)
        self.insns.append(finish(**dict.fromkeys(flags, True)))

    def _fences(self) -> Iterator[Fields]:
        """Sometimes: nobody begins the next scene before everybody has ended this one."""
        if self._chance(0.5):
            return
        yield noop(Stage.LOAD, push_next=True)
        yield noop(Stage.STORE, push_prev=True)
        yield noop(Stage.COMPUTE, pop_prev=True, pop_next=True, push_prev=True, push_next=True)
        yield noop(Stage.LOAD, pop_next=True)
        yield noop(Stage.STORE, pop_prev=True)

    def blockers(self, stage: Stage) -> list[Fields]:
        """What keeps a stage busy for a while."""
        count = int(self.rng.integers(1, self.machine.queues.command + 1))
        if stage == Stage.COMPUTE:
            iters = (int(self.rng.integers(1, 200)), 2)
            kind = self._pick(ALU_KINDS)
            return [self._alu(kind, uops=(0, 1), iters=iters, dst=(0, 0), src=(0, 0))]
        if stage == Stage.LOAD:
            return [self._whole(self._pick((Buffer.INP, Buffer.WGT))) for _ in range(count)]
        rows = self.half[Buffer.OUT]  # a burst each
        return [self._store(1, rows, STRIDE) for _ in range(count)]

    # ---- instructions ---------------------------------------------------------------------------

    def make(self, kind: str) -> Fields:
        """Any instruction of a kind, without flags, within the part of memory that is its own."""
        if kind in LOADS:
            return self._load(Buffer[kind.split()[1]])
        if kind.startswith("no-op"):
            return noop(KINDS[kind])
        if kind == "STORE OUT":
            x, y = (int(n) for n in self.rng.integers(1, 4, 2))
            return self._store(x, y, self._stride(x))
        iters = self._pick(((1, 1), (1, 3), (3, 1), (2, 3), (0, 3), (3, 0)))
        if kind.startswith(FusedOp.REQUANTIZE.name):
            return self._requantize(iters, kind.endswith("bias"))
        begin = int(self.rng.integers(0, UOPS))
        end = begin + int(self._pick((0, 1, 1, 1, min(4, UOPS - begin))))
        loop = {"uops": (begin, end), "iters": iters, "dst": self._factors()}
        if kind.startswith("GEMM"):
            return gemm(
                **loop,
                src=self._factors(),
                wgt=self._factors(),
                reset=kind == "GEMM reset",
                overwrite=kind == "GEMM overwrite",
            )
        return self._alu(kind, **loop, src=self._factors())

    def _requantize(self, iters: tuple[int, int], biased: bool) -> Fields:
        """On entries that are all different: what it writes it must not read soon after."""
        begin, end = sorted(UOPS + int(n) for n in self.rng.integers(0, APART + 1, 2))
        return requantize(
            uops=(begin, end),
            iters=iters,
            dst=(3 * APART, APART),
            bias=int(self.rng.integers(0, 2)) if biased else None,
            shift=int(self.rng.integers(32)),
            low=LowKind(int(self.rng.integers(len(LowKind)))),
            high=int(self.rng.integers(1 << 15)),
        )

    def _alu(self, kind: str, **loop) -> Fields:
        name, _, immediate = kind.partition(" ")
        low, high = IMMEDIATES[self._pick(tuple(IMMEDIATES))]
        imm = int(self.rng.integers(low, high + 1)) if immediate else None
        return alu(AluOp[name], **loop, imm=imm)

    def _factors(self) -> tuple[int, int]:
        """Small enough for loops of three."""
        most = max(min((self.loops - INDICES) // 4, 2), 0)
        return int(self.rng.integers(0, most + 1)), int(self.rng.integers(0, most + 1))

    def _load(self, buffer: Buffer) -> Fields:
        """Into the second half; of ACC, into the second quarter."""
        memory = Buffer.ACC if buffer == Buffer.ACC_8BIT else buffer
        base, room = self.half[memory], self.half[memory]
        if memory == Buffer.ACC:
            base = room = base // 2
        y, x = int(self._pick((0, 1, 1, 2, 3))), int(self.rng.integers(1, 4))
        pads = [0] * 4
        if self._chance(0.5):
            pads = [int(self._pick((0, 1))) for _ in range(4)]
            if self._chance(0.1):
                pads[int(self.rng.integers(4))] = 15
        if (y + pads[0] + pads[1]) * (x + pads[2] + pads[3]) > room:
            pads, y, x = [0] * 4, 1, 1
        return load(
            buffer,
            sram_base=base,
            dram_base=int(self.rng.integers(0, 64)),
            x_size=x,
            y_size=y,
            x_stride=self._stride(x),
            y_pad=(pads[0], pads[1]),
            x_pad=(pads[2], pads[3]),
        )

    def _whole(self, buffer: Buffer) -> Fields:
        """The second half of a memory of the load stage."""
        half = self.half[buffer]
        return load(buffer, sram_base=half, dram_base=0, x_size=half)

    def _store(self, x: int, y: int, stride: int) -> Fields:
        """From the second half."""
        base = self.half[Buffer.OUT]
        first = -(-self.written // self.machine.entry_bytes(Buffer.OUT))
        place = first + int(self.rng.integers(0, STRIDE))
        return store(sram_base=base, dram_base=place, x_size=x, y_size=y, x_stride=stride)

    def _stride(self, x: int) -> int:
        return int(self._pick((x, x + 2, max(x - 1, 0), 0)))

    def _pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def _chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)
