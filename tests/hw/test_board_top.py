"""Clock, pins and figures of the board, without running any tool."""

from fractions import Fraction

import pytest

from vta_hw.boards import bitstream
from vta_hw.boards.ecp5 import OSCILLATOR_HZ, PINS, Ulx3s
from vta_hw.boards.pll import LEAST_DETECTOR, VCO, find_pll
from vta_hw.synth import Synthesis, SynthesisError
from vta_hw.synth.report import Area, ModuleArea
from vta_isa import load_machine
from vta_isa.errors import VtaError

TINY = load_machine("tiny")
MHZ = 1_000_000


@pytest.mark.parametrize("wanted", [25, 50, 70, 75, 10, 13, 100, 399])
def test_the_pll_is_within_its_limits_and_never_too_fast(wanted) -> None:
    pll = find_pll(OSCILLATOR_HZ, wanted * MHZ)
    assert Fraction(wanted * MHZ) * 9 / 10 < pll.output_hz <= wanted * MHZ
    assert pll.input_hz / pll.reference >= LEAST_DETECTOR
    assert int(pll.output_hz * pll.output) in VCO
    if wanted in (25, 50, 70, 75, 100):
        assert pll.output_hz == wanted * MHZ


def test_the_fastest_clock_is_that_of_the_data_sheet() -> None:
    assert find_pll(OSCILLATOR_HZ, 1000 * MHZ).output_hz == 400 * MHZ


@pytest.mark.parametrize("wanted", [0, 1, MHZ])
def test_clocks_that_no_pll_makes_are_refused(wanted) -> None:
    with pytest.raises(VtaError, match=r"no clock of .* from an oscillator of 25 MHz"):
        find_pll(OSCILLATOR_HZ, wanted)


def test_every_port_has_a_pin_and_every_pin_a_port() -> None:
    board = Ulx3s(TINY)
    ports = {
        f"{path[0]}[{i}]" if len(signal) > 1 else path[0]
        for path, _, signal in board.signature.flatten(board)
        for i in range(len(signal))
    }
    assert {pin.port for pin in PINS} == ports
    assert len({pin.site for pin in PINS}) == len(PINS)
    text = board.constraints()
    assert 'LOCATE COMP "ftdi_txd" SITE "M1";' in text
    assert 'FREQUENCY PORT "clk_25mhz" 25 MHZ;' in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory_bytes": 0}, "a multiple of 4 KiB"),
        ({"memory_bytes": 4097}, "memory of 4097 bytes"),
        ({"baud": 0}, "0 baud cannot be made"),
        ({"baud": 30 * MHZ}, "at most a bit per 4 cycles"),
        ({"baud": 9 * MHZ, "clock_hz": 50 * MHZ}, "not more than 2% beside"),
    ],
)
def test_what_the_board_cannot_do_is_refused(options, message) -> None:
    with pytest.raises(VtaError, match=message):
        Ulx3s(TINY, **options)


def test_dividers_of_usual_speeds() -> None:
    for baud, divider in ((115_200, 434), (1_000_000, 50), (3_000_000, 17)):
        assert Ulx3s(TINY, clock_hz=50 * MHZ, baud=baud).divider == divider


@pytest.mark.parametrize(
    ("total", "message"),
    [
        (Area(block_ram=209), "209 block RAMs are needed, 64 of them for the memory"),
        (Area(dsp=157), "157 multipliers are needed"),
    ],
)
def test_a_machine_that_is_too_large_is_refused_before_place_and_route(total, message) -> None:
    memory = ModuleArea("system.memory", Area(), Area(block_ram=64))
    modules = (ModuleArea("", Area(), total), memory)
    figures = Synthesis("ulx3s", "ecp5", modules, (), (), {})
    with pytest.raises(SynthesisError, match=message):
        bitstream.check_room(figures)
    bitstream.check_room(
        Synthesis("ulx3s", "ecp5", (ModuleArea("", Area(), Area(dsp=156)), memory), (), (), {})
    )
