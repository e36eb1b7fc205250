"""Dependence tokens for programs made at random: ordered where they must be, and not everywhere.

A ``Weaver`` receives instructions in program order, each with what it must come after, and decides
the flags. It keeps a vector clock per stage: how many instructions of every stage are known to be
done when the stage's next one starts. A token carries the clock of the instruction that pushed it.
Where the clock does not cover what an instruction must come after, the weaver lets the instruction
pop a token, and makes one if there is none: on the last instruction of the producing stage, or on a
no-op. Load and store have no queue between them and meet on a no-op of compute. Tokens nobody needs
are pushed and popped here and there, so that queues are seldom empty.

Executed one after the other in program order, the instructions always find their tokens, and the
queues never hold more than their capacity. That rules out deadlock for any finite command queue:
the first instruction that is not done has everything it waits for.
"""

from collections import deque
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vta_isa.enums import Stage
from vta_isa.insn import finish, noop

Fields = dict[str, int]
Link = tuple[Stage, Stage]

PUSH_FLAG: dict[Link, str] = {
    (Stage.LOAD, Stage.COMPUTE): "push_next",
    (Stage.COMPUTE, Stage.LOAD): "push_prev",
    (Stage.COMPUTE, Stage.STORE): "push_next",
    (Stage.STORE, Stage.COMPUTE): "push_prev",
}
POP_FLAG: dict[Link, str] = {
    (Stage.LOAD, Stage.COMPUTE): "pop_prev",
    (Stage.COMPUTE, Stage.LOAD): "pop_next",
    (Stage.COMPUTE, Stage.STORE): "pop_prev",
    (Stage.STORE, Stage.COMPUTE): "pop_next",
}


class Weaver:
    """A growing list of instructions whose conflicts across stages are ordered by tokens.

    ``capacity`` is the most tokens a queue may hold; ``spare`` the chance that an instruction
    pushes, or pops, a token that no conflict asks for.
    """

    def __init__(self, rng: np.random.Generator, capacity: int, spare: float = 0.15):
        self.rng = rng
        self.capacity = capacity
        self.spare = spare
        self.insns: list[Fields] = []
        self.count = dict.fromkeys(Stage, 0)  # instructions of each stage so far
        self.clock = {stage: dict.fromkeys(Stage, 0) for stage in Stage}
        self.last: dict[Stage, Fields | None] = dict.fromkeys(Stage)
        self.queue: dict[Link, deque[dict[Stage, int]]] = {link: deque() for link in PUSH_FLAG}
        self.held_at_last = dict.fromkeys(PUSH_FLAG, 0)  # when the producer's last insn was done

    def add(self, insn: Mapping[str, int], stage: Stage, after: Mapping[Stage, int]) -> int:
        """Append ``insn``, ordered behind instruction ``after[s]`` (counted from 1) of stage ``s``.

        Returns the place of the instruction among those of its stage, counted from 1.
        """
        pops = self._pops_to_follow(stage, after)
        if len(pops) < 2 and self.rng.random() < self.spare:
            links = [link for link, tokens in self.queue.items() if link[1] == stage and tokens]
            pops |= {links[self.rng.integers(len(links))]} if links else set()
        pushes = {
            link
            for link, tokens in self.queue.items()
            if link[0] == stage and len(tokens) < self.capacity and self.rng.random() < self.spare
        }
        return self._append(dict(insn), stage, pops, pushes)

    def finish(self) -> None:
        """Append FINISH, behind everything that every stage did, and leave no token in a queue."""
        self._pop_all_into((Stage.LOAD, Stage.STORE))
        pops = self._pops_to_follow(Stage.COMPUTE, dict(self.count))
        held = {link for link, tokens in self.queue.items() for _ in tokens}
        single = all(len(tokens) < 2 for tokens in self.queue.values())
        if not (held == pops and single and self.rng.random() < 0.5):  # else FINISH pops itself
            if pops:
                self._append(noop(Stage.COMPUTE), Stage.COMPUTE, pops, set())
            self._pop_all_into((Stage.COMPUTE,))
            pops = set()
        self._append(finish(), Stage.COMPUTE, pops, set())

    def _pop_all_into(self, consumers: tuple[Stage, ...]) -> None:
        for link, tokens in self.queue.items():
            while link[1] in consumers and tokens:
                self._append(noop(link[1]), link[1], {link}, set())

    def _pops_to_follow(self, stage: Stage, after: Mapping[Stage, int]) -> set[Link]:
        """The queues the stage's next instruction must pop; no-ops before it do the rest."""
        pops: set[Link] = set()
        for other, place in after.items():
            if other == stage or self.clock[stage][other] >= place:
                continue
            if Stage.COMPUTE in (other, stage):
                link = (other, stage)
            else:
                between = self._pops_to_follow(Stage.COMPUTE, {other: place})
                if between:
                    self._append(noop(Stage.COMPUTE), Stage.COMPUTE, between, set())
                link, place = (Stage.COMPUTE, stage), self.count[Stage.COMPUTE]
            self._make_available(link, place)
            while self.queue[link][0][link[0]] < place:  # older tokens come first
                self._append(noop(stage), stage, {link}, set())
            pops.add(link)
        return pops

    def _make_available(self, link: Link, place: int) -> None:
        """See to it that the queue holds a token of the producer's ``place``-th insn or later."""
        producer, consumer = link
        tokens = self.queue[link]
        if tokens and tokens[-1][producer] >= place:
            return
        last = self.last[producer]
        free = last is not None and not last.get(PUSH_FLAG[link])
        if free and self.held_at_last[link] < self.capacity and self.rng.random() < 0.7:
            assert last is not None
            last[PUSH_FLAG[link]] = 1
            tokens.append(dict(self.clock[producer]))
            self.held_at_last[link] += 1
            return
        while len(tokens) >= self.capacity:
            self._append(noop(consumer), consumer, {link}, set())
        self._append(noop(producer), producer, set(), {link})

    def _append(self, insn: Fields, stage: Stage, pops: set[Link], pushes: set[Link]) -> int:
        clock = self.clock[stage]
        for link in pops:
            token = self.queue[link].popleft()
            insn[POP_FLAG[link]] = 1
            for other in Stage:
                clock[other] = max(clock[other], token[other])
        self.count[stage] += 1
        clock[stage] = self.count[stage]
        for link in pushes:
            self.queue[link].append(dict(clock))
            insn[PUSH_FLAG[link]] = 1
        for link, tokens in self.queue.items():
            if link[0] == stage:
                self.held_at_last[link] = len(tokens)
        self.insns.append(insn)
        self.last[stage] = insn
        return self.count[stage]


class Accesses:
    """For every entry of one memory, the last instruction of each stage that read or wrote it."""

    def __init__(self, size: int):
        self.read = {stage: np.zeros(size, dtype=np.int64) for stage in Stage}
        self.written = {stage: np.zeros(size, dtype=np.int64) for stage in Stage}

    def before_read(self, entries: NDArray[np.intp]) -> dict[Stage, int]:
        """What a read of ``entries`` must come after: the writes."""
        return {stage: int(self.written[stage][entries].max(initial=0)) for stage in Stage}

    def before_write(self, entries: NDArray[np.intp]) -> dict[Stage, int]:
        """What a write of ``entries`` must come after: the writes and the reads."""
        written = self.before_read(entries)
        return {s: max(written[s], int(self.read[s][entries].max(initial=0))) for s in Stage}
