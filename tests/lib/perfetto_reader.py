"""Reads a Perfetto trace back, knowing the format alone: tracks, slices, flows and samples."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos


@dataclass
class Slice:
    """From ``begin`` up to, not including, ``end``; ``level`` 0 is the outermost."""

    name: str
    category: str
    begin: int
    level: int
    arguments: dict[str, object]
    flows: list[int]
    ending_flows: list[int]
    end: int = -1


@dataclass
class ReadTrace:
    """``slices`` and ``samples`` by the name of the track, in the order of the file."""

    process: str = ""
    order: list[str] = field(default_factory=list)  # tracks, top to bottom
    units: dict[str, str] = field(default_factory=dict)
    slices: dict[str, list[Slice]] = field(default_factory=lambda: defaultdict(list))
    samples: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))


def read_trace(path: Path) -> ReadTrace:
    """Fails where the file breaks a rule of the format."""
    trace = protos.Trace.FromString(path.read_bytes())
    read = ReadTrace()
    names: dict[str, dict[int, str]] = defaultdict(dict)
    tracks, open_slices = {}, defaultdict(list)
    ranks = {}
    events = []
    for number, packet in enumerate(trace.packet):
        cleared = packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED
        assert bool(cleared) == (number == 0)
        for table, entries in packet.interned_data.ListFields():
            for entry in entries:
                assert entry.iid not in names[table.name], "an interned number is given twice"
                names[table.name][entry.iid] = entry.name
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("process"):
                read.process = track.process.process_name
                assert track.child_ordering == track.EXPLICIT
                continue
            tracks[track.uuid] = track.name
            ranks[track.name] = track.sibling_order_rank
            if track.HasField("counter"):
                read.units[track.name] = track.counter.unit_name
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    # Perfetto puts what happens into the order of time; at one time, that of the file stays.
    for at, event in sorted(events, key=lambda each: each[0]):
        name = tracks[event.track_uuid]
        if event.type == event.TYPE_COUNTER:
            value = getattr(event, event.WhichOneof("counter_value_field"))
            assert not read.samples[name] or at >= read.samples[name][-1][0]
            read.samples[name].append((at, value))
        elif event.type == event.TYPE_SLICE_BEGIN:
            found = Slice(
                names["event_names"][event.name_iid],
                *(names["event_categories"][number] for number in event.category_iids),
                at,
                len(open_slices[name]),
                {
                    names["debug_annotation_names"][each.name_iid]: getattr(
                        each, each.WhichOneof("value")
                    )
                    for each in event.debug_annotations
                },
                list(event.flow_ids),
                list(event.terminating_flow_ids),
            )
            open_slices[name].append(found)
            read.slices[name].append(found)
        else:
            assert event.type == event.TYPE_SLICE_END
            ended = open_slices[name].pop()
            ended.end = at
            assert ended.end > ended.begin
    assert not any(open_slices.values()), "a slice never ends"
    read.order = sorted(ranks, key=ranks.__getitem__)
    return read
