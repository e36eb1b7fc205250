"""Random primitives, legal or not: the illegal ones have to be refused with a reason."""

import contextlib
import random
from collections.abc import Callable

from compiler.schedule import Schedule
from vta_isa.errors import ScheduleError


def random_step(schedule: Schedule, rng: random.Random) -> bool:
    """Try one random primitive; whether it was legal."""
    stages = schedule.stages()
    stage = rng.choice(stages)
    kind = rng.choice(_KINDS)
    if kind in _CUTS and rng.random() < 0.6:
        stage = stages[-1]  # a consumer: stages that are cut cannot move into loops any more
    loops = schedule.loops(stage)
    loop = rng.choice(loops) if loops else "none"
    try:
        match kind:
            case "split":
                if len(loops) > 8:
                    return False
                if rng.random() < 0.7:
                    schedule.split(stage, loop, factor=rng.randint(1, 5))
                else:
                    schedule.split(stage, loop, nparts=rng.randint(1, 4))
            case "fuse":
                at = loops.index(loop) + 1 if loops else 0
                schedule.fuse(stage, loop, loops[at] if at < len(loops) else loop)
            case "reorder":
                chosen = rng.sample(loops, min(len(loops), rng.randint(2, 4)))
                schedule.reorder(stage, *chosen)
            case "tile":
                schedule.tile(stage, loop, rng.choice(loops), rng.randint(1, 3), rng.randint(1, 3))
            case "compute_at":
                consumer = rng.choice(schedule.stages())
                inside = schedule.loops(consumer)
                schedule.compute_at(stage, consumer, rng.choice(inside))
            case "compute_inline":
                schedule.compute_inline(stage)
            case "cache_read":
                tensors = [b.name for b in schedule.program.params] + schedule.stages()
                tensor = rng.choice([t for t in tensors if "." not in t])
                schedule.cache_read(tensor, rng.choice(["inp", "acc", "global"]), [stage])
            case "cache_write":
                if "." in stage:
                    return False
                schedule.cache_write(stage, "acc")
            case "set_scope":
                schedule.set_scope(stage, "acc")
            case "rename":
                schedule.rename(stage, loop, f"r{rng.randint(0, 99)}")
            case "annotate":
                schedule.annotate(stage, loop, "note", rng.randint(0, 9))
            case _:
                getattr(schedule, kind)(stage, loop)
    except ScheduleError:
        return False
    return True


def random_tiling(schedule: Schedule, rng: random.Random) -> None:
    """What real schedules do, at random: cut the last stage, move others inside, cut more."""
    last = schedule.stages()[-1]
    outputs = {buffer.name for buffer in schedule.program.outputs}
    if rng.random() < 0.5:
        _try(lambda: schedule.cache_write(rng.choice(sorted(outputs)), "acc"))
    _cut(schedule, last, rng)
    for stage in reversed(schedule.stages()):
        if stage in outputs or stage.endswith(".init"):
            continue
        if rng.random() < 0.3:
            readers = [s for s in schedule.stages() if s not in (stage, f"{stage}.init")]
            _try(lambda stage=stage, r=readers: schedule.cache_read(stage, "acc", rng.sample(r, 1)))
        for _ in range(rng.randint(1, 6)):
            consumer = rng.choice(schedule.stages())
            loops = schedule.loops(consumer)
            if loops:
                loop = rng.choice(loops)
                _try(lambda s=stage, c=consumer, at=loop: schedule.compute_at(s, c, at))
        if rng.random() < 0.4:
            _cut(schedule, stage, rng)
    for _ in range(4):
        random_step(schedule, rng)


def _cut(schedule: Schedule, stage: str, rng: random.Random) -> None:
    for loop in schedule.loops(stage):
        if rng.random() < 0.6:
            _try(lambda at=loop: schedule.split(stage, at, factor=rng.randint(1, 5)))
    loops = schedule.loops(stage)
    order = sorted(loops, key=lambda name: (not name.endswith("_o"), rng.random()))
    if len(order) > 1:
        _try(lambda: schedule.reorder(stage, *order))
    if len(order) > 1 and rng.random() < 0.3:
        _try(lambda: schedule.fuse(stage, order[0], order[1]))


def _try(step: Callable[[], object]) -> None:
    with contextlib.suppress(ScheduleError):
        step()


_CUTS = {"split", "tile", "fuse"}

_KINDS = [
    *["split"] * 4,
    *["compute_at"] * 12,
    *["reorder"] * 3,
    *["fuse"] * 2,
    "tile",
    "compute_inline",
    "cache_read",
    "cache_write",
    "set_scope",
    "rename",
    "annotate",
    "unroll",
    "vectorize",
    "parallel",
    "vthread",
]
