"""The clock of ECP5 boards, made from an oscillator."""

from dataclasses import dataclass
from fractions import Fraction

from amaranth.hdl import Instance

from vta_isa.errors import VtaError
from vta_isa.units import format_hertz

CELL = "EHXPLLL"
# Hz. The phase detector is taken below the 10 MHz of the data sheet, as `ecppll` of Project
# Trellis does: without it, an oscillator of 25 MHz gives multiples of 12.5 MHz only.
LEAST_DETECTOR = 3_125_000
VCO = range(400_000_000, 800_000_001)
MOST_OUTPUT = 400_000_000
DIVIDERS = range(1, 129)

# Inputs without a use here.
LOW = ("RST", "STDBY", "PLLWAKESYNC", "ENCLKOP", "PHASESEL0", "PHASESEL1")
HIGH = ("PHASEDIR", "PHASESTEP", "PHASELOADREG")


@dataclass(frozen=True)
class Pll:
    """``EHXPLLL`` with its first output fed back: input × feedback / reference."""

    input_hz: int
    reference: int
    feedback: int
    output: int  # of the oscillator inside

    @property
    def output_hz(self) -> Fraction:
        return Fraction(self.input_hz * self.feedback, self.reference)

    @property
    def constants(self) -> dict[str, str | int]:
        """Parameters of the cell; names and values are those of the vendor's library."""
        return {
            "PLLRST_ENA": "DISABLED",
            "INTFB_WAKE": "DISABLED",
            "STDBY_ENABLE": "DISABLED",
            "DPHASE_SOURCE": "DISABLED",
            "CLKOP_ENABLE": "ENABLED",
            "CLKOP_FPHASE": 0,
            "FEEDBK_PATH": "CLKOP",
            "CLKI_DIV": self.reference,
            "CLKFB_DIV": self.feedback,
            "CLKOP_DIV": self.output,
            "CLKOP_CPHASE": self.output // 2 - 1,
        }

    def instance(self, clock_in, clock_out, locked) -> Instance:
        inputs = {"CLKI": clock_in, "CLKFB": clock_out, **dict.fromkeys(LOW, 0)}
        inputs |= dict.fromkeys(HIGH, 1)
        # Settings of the loop filter, as `ecppll` gives them for every ratio.
        analogue = {
            "ICP_CURRENT": "12",
            "LPF_RESISTOR": "8",
            "MFG_ENABLE_FILTEROPAMP": "1",
            "MFG_GMCREF_SEL": "2",
        }
        return Instance(
            CELL,
            **{f"p_{name}": value for name, value in self.constants.items()},
            **{f"a_{name}": value for name, value in analogue.items()},
            **{f"i_{name}": value for name, value in inputs.items()},
            o_CLKOP=clock_out,
            o_LOCK=locked,
        )


def find_pll(input_hz: int, wanted_hz: int) -> Pll:
    """The PLL for the highest clock that is not above ``wanted_hz``."""
    best: Pll | None = None
    for reference in DIVIDERS:
        if input_hz < LEAST_DETECTOR * reference:
            break
        feedback = min(min(wanted_hz, MOST_OUTPUT) * reference // input_hz, DIVIDERS[-1])
        if not feedback:
            continue
        output = _middle_of_vco(Fraction(input_hz * feedback, reference))
        if output is None:
            continue
        found = Pll(input_hz, reference, feedback, output)
        if best is None or found.output_hz > best.output_hz:
            best = found
    if best is None:
        raise VtaError(
            f"no clock of {format_hertz(wanted_hz)} from an oscillator of "
            f"{format_hertz(input_hz)}; a PLL of ECP5 makes 3.125 MHz to 400 MHz"
        )
    return best


def _middle_of_vco(clock: Fraction) -> int | None:
    """The divider that brings the oscillator inside nearest to the middle of its range."""
    fitting = [divider for divider in DIVIDERS if VCO[0] <= clock * divider <= VCO[-1]]
    middle = (VCO[0] + VCO[-1]) // 2
    return min(fitting, key=lambda divider: abs(clock * divider - middle), default=None)


def _black_box() -> str:
    """RTLIL that tells Yosys of the cell before it reads the vendor's library."""
    inputs = ("CLKI", "CLKFB", *LOW, *HIGH)
    ports = [f"  wire input {i} \\{name}\n" for i, name in enumerate(inputs, start=1)]
    outputs = ("CLKOP", "LOCK")
    ports += [f"  wire output {i} \\{name}\n" for i, name in enumerate(outputs, len(ports) + 1)]
    parameters = [f"  parameter \\{name}\n" for name in Pll(1, 1, 1, 1).constants]
    return "".join(["attribute \\blackbox 1\n", f"module \\{CELL}\n", *parameters, *ports, "end\n"])


BLACK_BOX = _black_box()
