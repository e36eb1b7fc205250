"""What ``vta.execute`` and a launch take for a stream and for DRAM, and what they refuse."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vta
from simulator.machine import DEVICES, Simulator

VECTOR = Path(__file__).parent.parent / "vectors" / "01_gemm_reset_store"
STREAM = (VECTOR / "insn.bin").read_bytes()
WORDS = np.frombuffer(STREAM, "<u8").reshape(-1, 2)
DRAM = np.fromfile(VECTOR / "dram.bin", np.uint8)
AFTER = np.fromfile(VECTOR / "dram_out.bin", np.uint8)


def read_only() -> np.ndarray:
    image = DRAM.copy()
    image.flags.writeable = False
    return image


def unaligned() -> np.ndarray:
    image = np.zeros(len(DRAM) + 1, np.uint8)[1:]
    image[:] = DRAM
    return image


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "stream",
    [
        STREAM,
        bytearray(STREAM),
        memoryview(STREAM),
        WORDS,
        WORDS.reshape(-1),
        WORDS.view(np.int32),
        WORDS.view(np.uint8),
        WORDS.astype(">u8"),
        np.repeat(WORDS, 2, axis=0)[::2],
    ],
)
def test_a_stream_may_be_bytes_or_any_array_of_integers(stream: Any, device: str) -> None:
    assert (vta.execute(stream, DRAM, "default", device=device).dram == AFTER).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", [read_only, unaligned, DRAM.tobytes, lambda: DRAM.repeat(2)[::2]])
def test_dram_is_copied_however_it_lies_in_memory(make: Callable[[], Any], device: str) -> None:
    image = make()
    result = vta.execute(STREAM, image, "default", device=device)
    assert (result.dram == AFTER).all()
    assert result.dram.flags.writeable
    assert bytes(image) == DRAM.tobytes()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("stream", [WORDS.tolist(), "insn.bin", None, WORDS.astype(float)])
def test_what_is_no_stream(stream: Any, device: str) -> None:
    with pytest.raises(vta.VtaError, match="a stream is bytes or an array of integers, not "):
        vta.execute(stream, DRAM, "default", device=device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("image", "what"),
    [
        (DRAM.view(np.int8), r"\(6032,\) int8"),
        (DRAM.reshape(2, -1), r"\(2, 3016\) uint8"),
        (DRAM.astype(float), r"\(6032,\) float64"),
        (DRAM.tolist(), r"\(6032,\) int64"),
        (None, r"\(\) object"),
    ],
)
def test_what_is_no_dram(image: Any, what: str, device: str) -> None:
    with pytest.raises(vta.VtaError, match=f"dram is {what}; it must be .bytes,. uint8"):
        vta.execute(STREAM, image, "default", device=device)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_launch_writes_in_place_or_refuses(engine: str) -> None:
    machine = vta.load_machine("default")
    image = DRAM.repeat(2)[::2]
    Simulator(machine, engine=engine).launch(STREAM, image)
    assert (image == AFTER).all()
    with pytest.raises(vta.VtaError, match="dram is read-only, and a launch writes to it"):
        Simulator(machine, engine=engine).launch(STREAM, read_only())
    with pytest.raises(vta.VtaError, match="dram is a bytes; it must be"):
        Simulator(machine, engine=engine).launch(STREAM, DRAM.tobytes())  # type: ignore[arg-type]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("address", [-16, 1 << 32, 1 << 70])
def test_a_stream_lies_where_addresses_reach(address: int, device: str) -> None:
    with pytest.raises(vta.VtaError, match=r"an address has 32 bits \(axi.addr_bits\)"):
        vta.execute(STREAM, DRAM, "default", device=device, insn_address=address)


def test_machines_in_several_threads_do_not_meet() -> None:
    def run(number: int) -> bool:
        machine = ("default", {"axi": {"data_bits": 128}})[number % 2]
        return bool((vta.execute(STREAM, DRAM, machine).dram == AFTER).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(24)))
