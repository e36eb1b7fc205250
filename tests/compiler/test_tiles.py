"""The tile chooser against trying everything with the plain cost model."""

import random

import pytest
from machines import machine

from compiler.ops import Conv2d, Dense, Epilogue, conv2d, tile_conv2d, tile_dense
from compiler.ops.conv2d import _product as conv_product
from compiler.ops.dense import _product as dense_product
from compiler.ops.pipeline_cost import Costs
from compiler.ops.tiles import _candidates, _space
from vta_isa import Buffer, Machine, load_machine

MACHINES = ("default", "tiny", "batch2", "wide-in", "int4", "short-queues", "bus512")


def random_layer(rng: random.Random) -> Conv2d | Dense:
    epilogue = Epilogue(rng.random() < 0.5, rng.choice((None, 3)), rng.choice((None, (-8, 7))))
    if rng.random() < 0.3:
        return Dense(rng.randint(1, 40), rng.randint(1, 90), rng.randint(1, 90), epilogue)
    kernel, stride, pad = rng.choice(((1, 1, 0), (1, 2, 0), (3, 1, 1), (3, 2, 1)))
    return Conv2d(
        1,
        rng.randint(3, 12),
        rng.randint(3, 12),
        rng.randint(1, 40),
        rng.randint(1, 40),
        (kernel, kernel),
        (stride, stride),
        (pad, pad),
        epilogue,
    )


def with_latencies(target: Machine, read: int, write: int) -> Machine:
    return target.replace(memory={"read_latency": read, "write_latency": write})


@pytest.mark.parametrize("name", MACHINES)
def test_the_tile_is_the_cheapest_there_is_whatever_the_memory(name: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(3):
        layer = random_layer(rng)
        conv = isinstance(layer, Conv2d)
        for threads in (1, 2):
            for _ in range(2):  # the second time, candidates come from memory
                latencies = rng.randint(1, 300), rng.randint(1, 300)
                target = with_latencies(machine(name), *latencies)
                product = (conv_product if conv else dense_product)(layer, target)
                every = [
                    (work.at(target.memory), tile)
                    for work, tile in _candidates(product, layer.epilogue, target, threads)
                ]
                choose = tile_conv2d if conv else tile_dense
                chosen = choose(layer, target, vthreads=threads == 2)
                assert chosen.cycles == min(work.makespan() for work, _ in every)
                tiles = [tile for work, tile in every if work.makespan() == chosen.cycles]
                assert any(vars(tile) | {"cycles": chosen.cycles} == vars(chosen) for tile in tiles)


def test_columns_hold_what_the_candidates_are() -> None:
    target = with_latencies(load_machine("default"), 77, 13)
    layer = Conv2d(1, 14, 14, 64, 64, (3, 3), (1, 1), (1, 1), Epilogue(True, 8, (-128, 127)))
    product = conv_product(layer, target)
    space = _space(product, layer.epilogue, target, 2)
    every = list(_candidates(product, layer.epilogue, target, 2))
    bounds = space.lower_bounds(target.memory)
    assert len(every) == len(bounds) > 100
    for number, (work, tile) in enumerate(every):
        assert space.work(number) == work
        assert space.tile(number) == tile
        assert bounds[number] == work.at(target.memory).lower_bound


@pytest.mark.parametrize("latency", [1, 32, 1000])
def test_latency_added_later_is_latency_counted_from_the_start(latency: int) -> None:
    target = with_latencies(load_machine("default"), latency, latency)
    fast, whole = Costs(target, latency=False), Costs(target)
    for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.UOP):
        assert fast.load(buffer, 9, 3) + latency == whole.load(buffer, 9, 3)
    assert fast.store(9) + latency == whole.store(9)


def test_few_candidates_give_a_tile_that_is_no_better() -> None:
    target = load_machine("default")
    layer = Conv2d(1, 28, 28, 128, 128, (3, 3), (1, 1), (1, 1), Epilogue(True, 8, (-128, 127)))
    best = tile_conv2d(layer, target)
    cycles = [tile_conv2d(layer, target, candidates=count).cycles for count in (1, 3, 10**6)]
    assert cycles == sorted(cycles, reverse=True)
    assert cycles[-1] == best.cycles


def test_an_operator_is_cut_as_it_is_told() -> None:
    target = load_machine("default")
    layer = Conv2d(1, 14, 14, 32, 32, (3, 3), (1, 1), (1, 1))
    tile = tile_conv2d(layer, target, vthreads=False)
    assert conv2d(layer, target, tile=tile).plan == tile.describe()
    assert conv2d(layer, target).plan == tile_conv2d(layer, target).describe() != tile.describe()
