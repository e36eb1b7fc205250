"""``vta.cosim``: a stream or a workload on the simulator and on the RTL, and whether they agree."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vta_isa.encoding import as_words, decode_stream
from vta_isa.enums import Buffer, Opcode
from vta_isa.errors import StreamError
from vta_isa.machine import Machine, load_machine
from vta_isa.suggest import did_you_mean
from vta_runtime.devices.rtl import WavesWanted

from .differences import Difference
from .files import write_whole
from .lockstep import LaunchComparison, Lockstep
from .trace_text import trace_lines
from .waves import check_one_layer
from .workloads import Workload, about_layer, load_workload

MEMORIES = ("ideal", "latency", "jitter")

Program = str | Path | Mapping[str, object] | Workload | bytes | NDArray[Any]
# Called before each launch with the name of what it belongs to.
Progress = Callable[[str], None]

_WORKLOAD_SUFFIXES = (".yaml", ".yml")
_LEAST_DRAM, _MOST_DRAM = 1 << 12, 1 << 30  # bytes of the image we make up for a stream


@dataclass(frozen=True)
class Cosimulation:
    """The comparison of every launch; the last one is that with the difference, if there is one."""

    name: str
    machine: Machine  # with the memory model that was used
    launches: tuple[tuple[str, LaunchComparison], ...]  # what each belongs to: a layer, a stream

    @property
    def difference(self) -> Difference | None:
        """The first one found."""
        return next((run.difference for _, run in self.launches if run.difference), None)

    @property
    def agrees(self) -> bool:
        """Whether both sides did the same in every launch."""
        return self.difference is None

    def total(self, what: str) -> int:
        """Sum of ``cycles``, ``instructions``, ``bursts``, ... over the launches."""
        return sum(_int(run.as_json()[what]) for _, run in self.launches)

    def seconds(self, side: str) -> float:
        """Host time of one side, ``simulator`` or ``rtl``, compilation of the core excluded."""
        return sum(run.seconds[side] for _, run in self.launches)

    def __str__(self) -> str:
        """One line."""
        memory = self.machine.memory
        model = f"read latency {memory.read_latency}, write latency {memory.write_latency}"
        if memory.jitter is not None:
            model += f", jitter {memory.jitter}"
        head = f"{self.name} on {self.machine.name} ({model})"
        if self.difference is not None:
            name = self.launches[-1][0]
            where = f", launch of {name}" if name != self.name else ""
            return f"{head}: they differ{where}: {self.difference}"
        dead = sum(run.deadlocked for _, run in self.launches)
        ending = ", which both sides find to be deadlocked" if dead else ""
        return (
            f"{head}: simulator and RTL agree on {_count(len(self.launches), 'launch')}{ending}: "
            f"{self.total('cycles'):,} cycles, {self.total('instructions'):,} instructions, "
            f"{self.total('bursts'):,} bursts, {self.total('dram_bytes'):,} bytes of DRAM, "
            f"{self.total('sram_bytes'):,} bytes of SRAM"
        )

    def as_json(self) -> dict[str, object]:
        """Plain data that ``json`` writes and reads back unchanged."""
        return {
            "name": self.name,
            "machine": {"hash": self.machine.hash, **self.machine.model_dump(mode="json")},
            "agrees": self.agrees,
            "launches": [{"name": name, **run.as_json()} for name, run in self.launches],
        }

    def write_traces(self, folder: str | Path) -> list[Path]:
        """Both sides of every launch as text files of equal layout; DRAM too where it differs."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for number, (_, run) in enumerate(self.launches):
            sides = (("simulator", run.simulator), ("rtl", run.rtl))
            differ = bool((run.images[0] != run.images[1]).any())
            for (side, launch), image in zip(sides, run.images, strict=True):
                if launch is not None:
                    path = folder / f"launch{number}-{side}.txt"
                    write_whole(path, "".join(trace_lines(run.words, self.machine, launch)))
                    written.append(path)
                if differ and run.difference is not None:
                    path = folder / f"launch{number}-{side}-dram.bin"
                    write_whole(path, image.tobytes())
                    written.append(path)
        return written


def cosim(
    program: Program,
    machine: str | Path | Mapping[str, object] | Machine = "default",
    *,
    dram: NDArray[np.uint8] | bytes | None = None,
    insn_address: int = 0,
    memory: str | None = None,
    seed: int = 0,
    vthreads: bool = True,
    waves: WavesWanted | None = None,
    progress: Progress | None = None,
) -> Cosimulation:
    """Run ``program`` on the simulator and on the RTL and compare every cycle and every bit.

    ``program`` is a stream (bytes, an array of 128-bit words, or the path of a file that has them),
    which begins with ``dram`` and is fetched from ``insn_address``, or a workload, whose layers are
    compiled as ``run`` does. Without ``dram`` there are as many zeros as the stream touches.
    ``memory`` is ``ideal`` (latencies of one cycle), ``latency`` (the machine's, none late) or
    ``jitter`` (the machine's, and late beats from ``seed``); as the machine says where it is None.
    ``waves`` is a VCD or FST file for the RTL's signals, the first cycle to write there and the one
    behind the last, counted over all launches; of a workload with one layer.
    The comparison ends with the first difference. Raises StreamError for a stream that may not run.
    """
    target = with_memory(load_machine(machine), memory, seed)
    if (stream := _stream(program)) is None:
        assert not isinstance(program, bytes | np.ndarray)
        return _cosim_workload(load_workload(program), target, vthreads, waves, progress)
    name = Path(program).name if isinstance(program, str | Path) else "stream"
    if progress is not None:
        progress(name)
    image = _image(stream, target) if dram is None else np.frombuffer(dram, np.uint8)
    with closing(Lockstep(target, waves=waves)) as pair:
        launch = pair.launch(stream, image, insn_address)
    return Cosimulation(name, target, ((name, launch),))


def with_memory(machine: Machine, memory: str | None, seed: int = 0) -> Machine:
    """The machine with one of the memory models ``MEMORIES``, or as it is for None."""
    match memory:
        case None:
            return machine
        case "ideal":
            return machine.replace(memory={"read_latency": 1, "write_latency": 1, "jitter": None})
        case "latency":
            return machine.replace(memory={"jitter": None})
        case "jitter":
            return machine.replace(memory={"jitter": seed})
    raise StreamError(f"there is no memory model {memory!r}{did_you_mean(memory, MEMORIES)}")


def is_stream(program: str | Path) -> bool:
    """Whether a name is that of a file with a stream, not of a workload."""
    return Path(program).suffix not in _WORKLOAD_SUFFIXES and Path(program).is_file()


def _stream(program: Program) -> NDArray[np.uint64] | None:
    """(n, 2) words, or None if the program is a workload."""
    if isinstance(program, bytes | np.ndarray):
        return as_words(program)
    if isinstance(program, str | Path) and is_stream(program):
        return as_words(Path(program).read_bytes())
    return None


def _cosim_workload(
    workload: Workload,
    machine: Machine,
    vthreads: bool,
    waves: WavesWanted | None,
    progress: Progress | None,
) -> Cosimulation:
    from .compile import launched_streams

    launches: list[tuple[str, LaunchComparison]] = []
    if waves is not None:
        check_one_layer(workload, waves)
    for layer in workload.layers:
        if progress is not None:
            progress(layer.name)
        with about_layer(workload, layer), closing(Lockstep(machine, waves=waves)) as pair:
            for stream in launched_streams(layer, machine, vthreads):
                assert stream.dram is not None
                run = pair.launch(stream.words, stream.dram, stream.insn_address)
                launches.append((layer.name, run))
                if run.difference is not None:
                    return Cosimulation(workload.name, machine, tuple(launches))
    return Cosimulation(workload.name, machine, tuple(launches))


def _image(stream: NDArray[np.uint64], machine: Machine) -> NDArray[np.uint8]:
    """Zeros up to the last byte that the stream touches."""
    table = decode_stream(stream, machine)
    size = _LEAST_DRAM
    moves = (table["opcode"] == Opcode.LOAD) | (table["opcode"] == Opcode.STORE)
    for buffer in Buffer:
        rows = table[moves & (table["buffer"] == buffer) & (table["x_size"] > 0)]
        if len(rows):
            last = (rows["y_size"].astype(np.int64) - 1).clip(0) * rows["x_stride"]
            entries = rows["dram_base"] + last + rows["x_size"]
            size = max(size, int(entries.max()) * machine.entry_bytes(buffer))
    if size > _MOST_DRAM:
        raise StreamError(
            f"the stream reaches to byte {size:#x}; without a DRAM image at most {_MOST_DRAM:#x} "
            "are made up; give it one"
        )
    return np.zeros(size, dtype=np.uint8)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}es"


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
