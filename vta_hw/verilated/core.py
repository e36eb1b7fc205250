"""The compiled core as a machine: launches streams, keeps SRAM and tokens in between."""

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vta_isa.counters import CAUSE_COUNTERS, CAUSES
from vta_isa.encoding import as_words, decode_stream
from vta_isa.enums import Buffer, Opcode, Stage
from vta_isa.errors import DeadlockError, StreamError, VtaError
from vta_isa.insn import INSN_BYTES
from vta_isa.launch import Bursts, Launch, Places, Timeline
from vta_isa.machine import Machine, load_machine
from vta_isa.microarch import READ_CHANNEL, WRITE_CHANNEL, jitter_key, mul_interval
from vta_isa.tensors import unpack_entries

from ..counts import count_widths
from ..scratchpad import Geometry
from .build import library
from .waves import Waves

DONE, QUIET, CYCLE_LIMIT, PROTOCOL = range(4)  # Status in shim.cpp
STALLS = ("ar", "aw", "w")  # channels that the memory can hold up
_STAGE_OF = {
    f"{stage}_{cause}": i for i, (stage, each) in enumerate(CAUSES.items()) for cause in each
}
SLACK = 1000  # cycles without an event that are no reason to worry


class _Launch(ctypes.Structure):
    """VtaLaunch in shim.cpp."""

    _fields_ = (
        ("dram", ctypes.c_void_p),
        ("dram_bytes", ctypes.c_uint64),
        ("stream", ctypes.c_void_p),
        *(
            (name, ctypes.c_uint64)
            for name in (
                *("insn_address", "insn_count", "read_latency", "write_latency", "jitter"),
                *("read_key", "write_key", "pressure", "quiet_limit", "cycle_limit"),
            )
        ),
        *((name, ctypes.c_void_p) for name in ("dispatch", "start", "end", "stage")),
        ("cycles", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in ("count_bits", "counters", "count_stage")),
        ("counter_count", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in ("causes", "stalled", "bursts")),
        *((name, ctypes.c_uint64) for name in ("burst_count", "bad_address", "failed")),
        ("problem", ctypes.c_char * 128),
    )


class VerilatedCore:
    """The RTL of one machine, in the shared memory model; SRAM and tokens start out empty.

    With ``waves`` every signal is written to a file, which is whole after ``close``; that takes
    another, slower library. Building takes seconds for small machines and half a minute for large
    ones, the first time.
    """

    def __init__(self, machine: Machine | str, *, waves: Waves | None = None):
        self.machine = load_machine(machine)
        self._library = _library(self.machine, waves is not None)
        self._bench = self._library.vta_new()
        self._waves = waves
        if waves is not None:
            path = os.fsencode(waves.recorded)
            if not self._library.vta_waves(self._bench, path, waves.begin, waves.end):
                raise VtaError(
                    f"{waves.path}: cannot be written; name a file in an existing folder"
                )

    def reset(self) -> None:
        """Forget tokens and whatever was running; SRAM contents stay."""
        self._library.vta_reset(self._bench)

    def launch(
        self,
        stream: bytes | NDArray[np.uint64],
        dram: NDArray[np.uint8],
        insn_address: int = 0,
        *,
        pressure: int = 0,
        cycle_limit: int = (1 << 63) - 1,
        record_bursts: bool = False,
        record_places: bool = False,
    ) -> Launch:
        """Run ``stream`` on ``dram``, which changes in place.

        ``record_bursts`` adds every DRAM burst to the timeline, ``record_places`` to which
        instruction each cycle of each stage belongs.

        With ``pressure``, a seed above 0, every channel of the memory is ready only now and then:
        other cycles, same results.

        The stream is seen by fetch at ``insn_address`` and is no part of ``dram``. Raises
        DeadlockError when nothing happens any more, StreamError for an access outside ``dram``;
        what was written until then stays written, and ``reset`` is needed before the next launch.
        """
        machine = self.machine
        words = np.ascontiguousarray(as_words(stream))
        if insn_address % INSN_BYTES:
            raise StreamError(
                f"the stream begins at byte {insn_address:#x}; instructions are aligned to "
                f"{INSN_BYTES} bytes; place it at a multiple of that"
            )
        if dram.dtype != np.uint8 or not dram.flags.c_contiguous:
            raise StreamError("the DRAM image is a contiguous array of uint8")
        count = len(words)
        cycles = {name: np.full(count, -1, dtype=np.int64) for name in ("dispatch", "start", "end")}
        stage = np.zeros(count, dtype=np.int8)
        bits = np.array(list(count_widths().values()), dtype=np.uint8)
        counted = np.zeros(len(bits), dtype=np.uint64)
        stages = np.array([_STAGE_OF.get(name, -1) for name in count_widths()], dtype=np.int8)
        rows = count if record_places else 0
        causes = np.zeros((rows, len(CAUSE_COUNTERS)), dtype=np.int64)
        stalled = np.zeros((rows, len(STALLS)), dtype=np.int64)
        seed = machine.memory.jitter
        request = _Launch(
            dram=dram.ctypes.data,
            dram_bytes=len(dram),
            stream=words.ctypes.data,
            insn_address=insn_address,
            insn_count=count,
            read_latency=machine.memory.read_latency,
            write_latency=machine.memory.write_latency,
            jitter=int(seed is not None),
            read_key=jitter_key(seed or 0, READ_CHANNEL),
            write_key=jitter_key(seed or 0, WRITE_CHANNEL),
            pressure=pressure,
            quiet_limit=_longest_quiet(words, machine),
            cycle_limit=cycle_limit,
            stage=stage.ctypes.data,
            count_bits=bits.ctypes.data,
            counters=counted.ctypes.data,
            count_stage=stages.ctypes.data,
            causes=causes.ctypes.data if record_places else None,
            stalled=stalled.ctypes.data if record_places else None,
            counter_count=len(bits),
            **{name: array.ctypes.data for name, array in cycles.items()},
        )
        status = self._library.vta_launch(self._bench, ctypes.byref(request))
        if status == PROTOCOL:
            raise AssertionError(f"the RTL broke the AXI protocol: {request.problem.decode()}")
        if status != DONE:
            waiting = np.flatnonzero(cycles["end"] < 0)
            first = int(waiting[0]) if len(waiting) else count
            what = "the cycle limit is reached" if status == CYCLE_LIMIT else "nothing happens"
            raise DeadlockError(
                f"{what}: insn {first} has not ended, nor have {len(waiting) - 1} others; stages "
                "wait for tokens that never come",
                insn=first,
            )
        if request.failed:
            raise StreamError(
                f"{request.failed} beats were read or written outside DRAM, the first at byte "
                f"{request.bad_address:#x}; the image has {len(dram)} bytes"
            )
        counters = dict(zip(count_widths(), counted.tolist(), strict=True))
        bursts = _bursts(request) if record_bursts else None
        places = Places(causes, stalled) if record_places else None
        timeline = Timeline(
            stage, cycles["dispatch"], cycles["start"], cycles["end"], bursts, places
        )
        return Launch(request.cycles, counters, timeline)

    def sram(self, buffer: Buffer) -> NDArray[np.integer]:
        """A copy of one memory: ``(depth, rows, columns)`` scalars, ``(depth,) uint32`` for UOP."""
        machine = self.machine
        geometry = Geometry.of(machine, buffer)
        size = machine.entry_bytes(buffer)
        banks = []
        for bank in range(geometry.banks):
            stride = ctypes.c_uint64()
            place = self._library.vta_memory(self._bench, buffer, bank, ctypes.byref(stride))
            assert place, f"the library has no bank {bank} of {buffer.name} memory"
            raw = (ctypes.c_uint8 * (geometry.rows * stride.value)).from_address(place)
            entries = np.frombuffer(raw, dtype=np.uint8).reshape(geometry.rows, -1)
            banks.append(entries[:, :size])
        # Entry i is in bank i mod banks.
        data = np.stack(banks, axis=1).reshape(-1, size)[: machine.depth(buffer)]
        if buffer == Buffer.UOP:
            return np.ascontiguousarray(data).view("<u4").reshape(-1)
        return unpack_entries(np.ascontiguousarray(data), buffer, machine)

    def close(self) -> None:
        """Nothing can be launched or looked at any more; the file of waves is whole."""
        if self._bench is None:
            return
        self._library.vta_delete(self._bench)
        self._bench = None
        if self._waves is not None:
            self._waves.finish()

    def __del__(self) -> None:
        if bench := getattr(self, "_bench", None):
            self._library.vta_delete(bench)


def run_rtl(
    stream: bytes | NDArray[np.uint64],
    dram: NDArray[np.uint8],
    machine: Machine | str,
    *,
    insn_address: int = 0,
) -> tuple[NDArray[np.uint8], Launch]:
    """The DRAM image after one launch of a fresh core, and its cycles; ``dram`` stays as it is."""
    image = np.array(dram, dtype=np.uint8)
    launch = VerilatedCore(machine).launch(stream, image, insn_address)
    return image, launch


def _bursts(request: _Launch) -> Bursts:
    """A copy of the bursts of a launch: reads before writes, each in the order of their issue."""
    rows = np.zeros((request.burst_count, 8), dtype=np.int64)
    if rows.size:
        ctypes.memmove(rows.ctypes.data, request.bursts, rows.nbytes)
    rows = rows[np.argsort(rows[:, 0] == Stage.STORE, kind="stable")]
    return Bursts(rows[:, 0].astype(np.int8), *(rows[:, i].copy() for i in range(1, 8)))


def _longest_quiet(words: NDArray[np.uint64], machine: Machine) -> int:
    """Cycles that can pass between two events on the bus or in the stages."""
    table = decode_stream(words, machine)
    loops = table[(table["opcode"] == Opcode.GEMM) | (table["opcode"] == Opcode.ALU)]
    uops = np.maximum(loops["uop_end"].astype(np.int64) - loops["uop_begin"], 0)
    iterations = (uops * loops["iter_out"] * loops["iter_in"]).max(initial=0)
    memory = machine.memory
    # Padding is written quietly, too: at most a buffer full.
    padding = max(machine.sram.model_dump().values())
    waits = memory.read_latency + memory.write_latency + padding
    interval = max(machine.alu.tensor_interval, mul_interval(machine))
    return int(iterations) * interval + waits + SLACK


_LIBRARIES: dict[tuple[str, bool], ctypes.CDLL] = {}


def _library(machine: Machine, waves: bool) -> ctypes.CDLL:
    """The machine's library, looked up once per process: hashing all sources takes a while."""
    key = machine.hash, waves
    if key not in _LIBRARIES:
        _LIBRARIES[key] = _load(library(machine, waves=waves))
    return _LIBRARIES[key]


@cache
def _load(path: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(path))
    signatures: dict[str, tuple[Callable[..., object] | None, list[type]]] = {
        "vta_new": (ctypes.c_void_p, []),
        "vta_delete": (None, [ctypes.c_void_p]),
        "vta_reset": (None, [ctypes.c_void_p]),
        "vta_memory": (
            ctypes.c_void_p,
            [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p],
        ),
        "vta_waves": (
            ctypes.c_int32,
            [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64],
        ),
        "vta_launch": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        getattr(loaded, name).restype = result
        getattr(loaded, name).argtypes = arguments
    return loaded
