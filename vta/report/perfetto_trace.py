"""Runs as traces for the Perfetto UI (ui.perfetto.dev), in its protobuf format.

One nanosecond of the trace is one cycle. Layers follow each other, each once; every layer begins on
a machine fresh from reset. Stages, DRAM channels and layers are tracks, tokens are flows, memory
traffic and the fill of every queue are counters.
"""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from vta_isa.assembly import format_stream
from vta_isa.encoding import decode_stream
from vta_isa.enums import Buffer, Stage, TokenQueue
from vta_isa.errors import VtaError
from vta_isa.insn import FLAGS, INSN_DTYPE
from vta_isa.launch import Bursts, Launch
from vta_isa.machine import Machine

from .causes import phrase
from .timeline import Token, TokenFlow, Wait, bytes_per_window, depth, waits

FETCH = "fetch"
CATEGORIES = ("layer", "instruction", "wait", "burst")
WINDOW = 64  # cycles that one sample of a bandwidth is the mean of

_SEQUENCE = 1  # all packets are of one writer
_PROCESS = 1
_STAGES = tuple(stage.name.lower() for stage in Stage)
_CHANNELS = ("DRAM read", "DRAM write")
_COMMANDS = tuple(f"{stage} commands queued" for stage in _STAGES)
_TOKENS = tuple(f"tokens {queue.name.lower().replace('_', ' ')}" for queue in TokenQueue)
_BANDWIDTHS = tuple(f"{channel} bandwidth" for channel in _CHANNELS)
_OUTSTANDING = "DRAM read bursts outstanding"
# What is shown from top to bottom, and the units of counters.
TRACKS = ("layer", FETCH, *_STAGES, *_CHANNELS)
COUNTERS: Mapping[str, str] = {
    **dict.fromkeys(_BANDWIDTHS, "B/cycle"),
    _OUTSTANDING: "bursts",
    **dict.fromkeys(_COMMANDS, "instructions"),
    **dict.fromkeys(_TOKENS, "tokens"),
}


class TraceWriter:
    """Writes one trace to ``file``, launch by launch; it is valid after each of them.

    ``title`` names the process that the tracks belong to. Raises VtaError where the Python package
    ``perfetto`` is missing.
    """

    def __init__(self, file: IO[bytes], title: str):
        try:
            from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
        except ModuleNotFoundError as error:
            raise VtaError(
                "a timeline needs perfetto, which is not installed; it comes with "
                "`pip install 'vta-sdk[report]'`"
            ) from error
        self._protos: Any = protos
        self._file = file
        self._now = 0  # cycles of all launches so far
        self._numbers = count(1)  # of tokens
        self._interned: dict[tuple[str, str], int] = {}
        self._values: dict[str, float] = {}  # of counters, as written last
        self._packets = protos.Trace()
        self._track_ids = {name: 2 + i for i, name in enumerate((*TRACKS, *COUNTERS))}
        self._begin(title)

    def layer(
        self,
        name: str,
        machine: Machine,
        launches: Sequence[tuple[NDArray[np.uint64], Launch]],
        facts: Mapping[str, int | float | str] | None = None,
    ) -> None:
        """Append a layer: ``(words, launch)`` of each launch, made one after the other.

        ``words`` are (n, 2) uint64; timelines must hold their bursts. ``facts`` are shown where the
        layer is selected.
        """
        tokens = TokenFlow(self._numbers)
        for queue_name in _TOKENS:  # the machine is fresh
            self._counter(queue_name, np.zeros(1, np.int64), np.zeros(1, np.int64))
        begin = self._now
        self._slice_begin("layer", begin, name, "layer", facts or {})
        for number, (words, launch) in enumerate(launches):
            arguments = {"instructions": len(words), **launch.counters}
            self._slice_begin("layer", self._now, f"launch {number}", "layer", arguments)
            self._launch(words, machine, launch, tokens)
            self._now += launch.cycles
            self._slice_end("layer", self._now)
        self._slice_end("layer", self._now)
        self._flush()

    def _begin(self, title: str) -> None:
        packet = self._packet()
        packet.sequence_flags = self._protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        packet.first_packet_on_sequence = True
        track = packet.track_descriptor
        track.uuid = _PROCESS
        track.process.pid = _PROCESS
        track.process.process_name = title
        track.child_ordering = self._protos.TrackDescriptor.EXPLICIT
        for rank, (name, uuid) in enumerate(self._track_ids.items()):
            track = self._packet().track_descriptor
            track.uuid = uuid
            track.parent_uuid = _PROCESS
            track.name = name
            track.sibling_order_rank = rank
            if name in COUNTERS:
                track.counter.unit_name = COUNTERS[name]
        self._flush()

    def _launch(
        self, words: NDArray[np.uint64], machine: Machine, launch: Launch, tokens: TokenFlow
    ) -> None:
        timeline, bursts = launch.timeline, launch.timeline.bursts
        assert bursts is not None, "a trace shows bursts; record them"
        table = decode_stream(words, machine)
        held = {queue: len(left) for queue, left in tokens.left.items()}
        popped, pushed = tokens.launch(table, timeline)
        self._instructions(words, table, machine, launch, popped, pushed)
        self._bursts(bursts, table, machine)
        self._bandwidths(bursts, machine, launch.cycles)
        self._fills(launch, popped, pushed, held)

    def _instructions(
        self,
        words: NDArray[np.uint64],
        table: NDArray[np.void],
        machine: Machine,
        launch: Launch,
        popped: list[dict[TokenQueue, Token]],
        pushed: list[dict[TokenQueue, Token]],
    ) -> None:
        timeline, now = launch.timeline, self._now
        before: dict[int, list[Wait]] = {}
        for wait in waits(timeline, popped):
            if wait.cause != "idle":
                before.setdefault(wait.insn, []).append(wait)
        texts = format_stream(words, machine, comments=False).splitlines()
        names = INSN_DTYPE.names or ()
        columns = (timeline.stage, timeline.dispatch, timeline.start, timeline.end)
        rows = zip(texts, table.tolist(), *(column.tolist() for column in columns), strict=True)
        for insn, (text, record, stage, dispatch, start, end) in enumerate(rows):
            name = text.split()[0]
            fields = {
                field: value
                for field, value in zip(names, record, strict=True)
                if value and field != "opcode" and field not in FLAGS
            }
            arguments = {"assembly": text, "insn": insn, "dispatch": dispatch, **fields}
            self._slice_begin(FETCH, now + dispatch, name, "instruction", {"insn": insn})
            self._slice_end(FETCH, now + dispatch + 1)
            # In the order of time: where one slice ends and the next one begins in the same cycle,
            # readers take the order of the file.
            for wait in before.get(insn, ()):
                self._wait(wait)
            event = self._slice_begin(
                _STAGES[stage - 1], now + start, name, "instruction", arguments
            )
            event.flow_ids.extend(token.number for token in pushed[insn].values())
            event.terminating_flow_ids.extend(token.number for token in popped[insn].values())
            self._slice_end(_STAGES[stage - 1], now + end + 1)

    def _wait(self, wait: Wait) -> None:
        stage, begin = wait.stage.name.lower(), self._now + wait.begin
        self._slice_begin(stage, begin, phrase(wait.cause), "wait", {"insn": wait.insn})
        self._slice_end(stage, self._now + wait.end)

    def _bursts(self, bursts: Bursts, table: NDArray[np.void], machine: Machine) -> None:
        fields = ("stage", "insn", "address", "beats", "request", "issue", "first", "last")
        rows = zip(*(getattr(bursts, name).tolist() for name in fields), strict=True)
        buffers = {int(buffer): buffer.name.lower() for buffer in Buffer}
        buffer = table["buffer"].tolist()
        for row in rows:
            values = dict(zip(fields, row, strict=True))
            stage, first, last = values.pop("stage"), values.pop("first"), values.pop("last")
            name = buffers.get(buffer[values["insn"]], "other") if stage else "instructions"
            channel = _CHANNELS[stage == Stage.STORE]
            values["bytes"] = values["beats"] * machine.bus_bytes
            self._slice_begin(channel, self._now + first, name, "burst", values)
            self._slice_end(channel, self._now + last + 1)

    def _bandwidths(self, bursts: Bursts, machine: Machine, cycles: int) -> None:
        for writes, name in enumerate(_BANDWIDTHS):
            moved = bytes_per_window(bursts, machine.bus_bytes, WINDOW, cycles, writes=bool(writes))
            begins = np.arange(len(moved)) * WINDOW
            widths = np.minimum(WINDOW, cycles - begins)
            self._counter(name, begins, np.round(moved / widths, 6))
            self._counter(name, np.array([cycles]), np.zeros(1))

    def _fills(
        self,
        launch: Launch,
        popped: list[dict[TokenQueue, Token]],
        pushed: list[dict[TokenQueue, Token]],
        held: Mapping[TokenQueue, int],
    ) -> None:
        """Queues as they are in each cycle: what is pushed in one is inside from the next on, what
        is popped in one is gone from the next on."""
        timeline, bursts = launch.timeline, launch.timeline.bursts
        assert bursts is not None
        for stage, name in zip(Stage, _COMMANDS, strict=True):
            mine = timeline.stage == stage
            self._counter(name, *depth(timeline.dispatch[mine] + 1, timeline.start[mine] + 1))
        for queue, name in zip(TokenQueue, _TOKENS, strict=True):
            gone = [insn for insn, tokens in enumerate(popped) if queue in tokens]
            given = [insn for insn, tokens in enumerate(pushed) if queue in tokens]
            cycles, counts = depth(timeline.end[given] + 1, timeline.start[gone] + 1)
            self._counter(name, cycles, counts + held[queue])
        reads = bursts.stage != Stage.STORE
        self._counter(_OUTSTANDING, *depth(bursts.issue[reads], bursts.last[reads] + 1))

    def _counter(self, name: str, cycles: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Samples of a counter, those left out that change nothing."""
        for cycle, value in zip(cycles.tolist(), values.tolist(), strict=True):
            if value == self._values.get(name):
                continue
            self._values[name] = value
            event = self._event(name, self._now + cycle, "TYPE_COUNTER")
            if isinstance(value, int):
                event.counter_value = value
            else:
                event.double_counter_value = value

    def _slice_begin(
        self,
        track: str,
        cycle: int,
        name: str,
        category: str,
        arguments: Mapping[str, int | float | str],
    ) -> Any:
        event = self._event(track, cycle, "TYPE_SLICE_BEGIN")
        event.name_iid = self._intern("event_names", name)
        event.category_iids.append(self._intern("event_categories", category))
        for argument, value in arguments.items():
            annotation = event.debug_annotations.add()
            annotation.name_iid = self._intern("debug_annotation_names", argument)
            match value:
                case str():
                    annotation.string_value = value
                case int():
                    annotation.int_value = value
                case float():
                    annotation.double_value = value
        return event

    def _slice_end(self, track: str, cycle: int) -> None:
        self._event(track, cycle, "TYPE_SLICE_END")

    def _event(self, track: str, cycle: int, kind: str) -> Any:
        packet = self._packet()
        packet.sequence_flags = self._protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        packet.timestamp = cycle
        event = packet.track_event
        event.type = getattr(self._protos.TrackEvent, kind)
        event.track_uuid = self._track_ids[track]
        return event

    def _intern(self, table: str, text: str) -> int:
        """The number that stands for ``text`` in all that follows."""
        if (table, text) not in self._interned:
            number = self._interned[table, text] = len(self._interned) + 1
            entry = getattr(self._packets.packet[-1].interned_data, table).add()
            entry.iid, entry.name = number, text
        return self._interned[table, text]

    def _packet(self) -> Any:
        packet = self._packets.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet

    def _flush(self) -> None:
        """A trace is its packets: traces in a row are one trace."""
        self._file.write(self._packets.SerializeToString())
        self._packets.Clear()
