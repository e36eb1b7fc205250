"""What the core does with its cycles, as it shows it on `trace` and `counts`: for coverage."""

from collections import deque

import numpy as np

from vta_isa.counters import CAUSE_COUNTERS, CAUSES
from vta_isa.launch import Places

STAGE_OF = {f"{stage}_{cause}": i for i, (stage, of) in enumerate(CAUSES.items()) for cause in of}
CHANNELS = ("ar", "aw", "w")


class Observer:
    """One launch of ``count`` instructions, cycle by cycle; ``places`` in the end."""

    def __init__(self, dut, count: int):
        self.dut = dut
        self.count = count
        self.dispatched = 0
        self.queued = [deque() for _ in range(3)]
        self.running = [None, None, None]
        self.causes = np.zeros((count, len(CAUSE_COUNTERS)), dtype=np.int64)
        self.stalled = np.zeros((count, len(CHANNELS)), dtype=np.int64)

    def cycle(self, counts: dict[str, int]) -> None:
        """At the end of a cycle, with what was counted in it."""
        owners = [self._owner(stage) for stage in range(4)]
        for column, name in enumerate(CAUSE_COUNTERS):
            owner = owners[STAGE_OF[name]]
            if owner is not None:
                self.causes[owner, column] += counts[name]
        held = [
            self._wire(f"m_axi_{channel}valid") and not self._wire(f"m_axi_{channel}ready")
            for channel in CHANNELS
        ]
        for owner in owners[1:]:
            if owner is not None:
                self.stalled[owner] += held
        self._events()

    @property
    def places(self) -> Places:
        return Places(self.causes, self.stalled)

    def _owner(self, stage: int) -> int | None:
        """The instruction that a cycle of a stage belongs to."""
        if stage == 0:
            return self.dispatched if self.dispatched < self.count else None
        running, queued = self.running[stage - 1], self.queued[stage - 1]
        return running if running is not None else queued[0] if queued else None

    def _events(self) -> None:
        dispatch, start, end = (
            self._wire(f"trace_{what}") for what in ("dispatch", "start", "end")
        )
        for lane in range(3):
            if end >> lane & 1:
                self.running[lane] = None
            if start >> lane & 1:
                self.running[lane] = self.queued[lane].popleft()
            if dispatch >> lane & 1:
                self.queued[lane].append(self.dispatched)
                self.dispatched += 1

    def _wire(self, name: str) -> int:
        return int(getattr(self.dut, name).value)
