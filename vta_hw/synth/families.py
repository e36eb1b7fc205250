"""The FPGA families: how Yosys is called for each, and what its cells cost.

A cell costs what it occupies in the vendor's own utilisation report. For xc7 that is "Slice LUTs"
of Vivado, logic and memory together, which is how the published machine was counted. Vivado also
packs two small functions into one LUT, which is not counted on here: these are upper bounds.
"""

import re
from dataclasses import dataclass
from functools import cache

from .errors import SynthesisError
from .report import Area

LUT, FF, DSP, BLOCK_RAM = Area(lut=1), Area(ff=1), Area(dsp=1), Area(block_ram=1)
FREE = Area()


def lut_ram(luts: int) -> Area:
    """LUTs that serve as memory."""
    return Area(lut=luts, lut_ram=luts)


@dataclass(frozen=True)
class Family:
    """``cells``: (pattern of cell types, cost), the first match counts."""

    name: str
    command: str  # of Yosys, without -top
    cells: tuple[tuple[str, Area], ...]
    dsp_name: str
    block_ram_name: str

    def cost(self, cell_type: str) -> Area:
        """Of one cell. Raises ``SynthesisError`` for a type that is not in ``cells``."""
        return _cost(self, cell_type)


@cache
def _cost(family: Family, cell_type: str) -> Area:
    for pattern, area in family.cells:
        if re.fullmatch(pattern, cell_type):
            return area
    raise SynthesisError(
        f"{family.name}: Yosys used a cell {cell_type} whose cost is not known here; "
        "add it to vta_hw/synth/families.py"
    )


# Out of context: no pads. Carry chains and wide multiplexers lie beside LUTs that are counted.
XC7 = Family(
    "xc7",
    "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf",
    (
        (r"LUT[1-6]|INV", LUT),
        (r"SRL16E|SRLC16E|SRLC32E|RAM(16|32|64)X1S", lut_ram(1)),
        (r"RAM(16|32|64)X1D|RAM128X1S", lut_ram(2)),
        (r"RAM128X1D|RAM256X1S|RAM32M|RAM64M", lut_ram(4)),
        (r"FD[CPRS]E(_1)?|LD[CP]E", FF),
        (r"DSP48E1", DSP),
        (r"RAMB36E1", BLOCK_RAM),
        (r"RAMB18E1", Area(block_ram=0.5)),
        (r"CARRY4|MUXF[78]|GND|VCC", FREE),
    ),
    "DSP48E1",
    "RAMB36",
)

ECP5 = Family(
    "ecp5",
    "synth_ecp5",
    (
        (r"LUT4", LUT),
        (r"CCU2C", Area(lut=2)),  # two bits of a carry chain are the two LUTs of a slice
        (r"TRELLIS_DPR16X4", lut_ram(6)),  # two slices hold the bits, a third one writes
        (r"TRELLIS_FF", FF),
        (r"MULT18X18D|MULT9X9D", DSP),
        (r"DP16KD|PDPW16KD", BLOCK_RAM),
        (r"PFUMX|L6MUX21|GND|VHI|VLO", FREE),
    ),
    "MULT18X18D",
    "DP16KD",
)

ICE40 = Family(
    "ice40",
    "synth_ice40 -dsp",
    (
        (r"SB_LUT4", LUT),
        (r"SB_DFF\w*", FF),
        (r"SB_MAC16", DSP),
        (r"SB_RAM40_4K\w*", BLOCK_RAM),
        (r"SB_CARRY", FREE),
    ),
    "SB_MAC16",
    "SB_RAM40",
)

GOWIN = Family(
    "gowin",
    "synth_gowin -family gw2a -noiopads",
    (
        (r"LUT[1-4]|INV|ALU", LUT),
        (r"RAM16S(DP)?[124]", lut_ram(8)),  # of 16 x 4 bits, whatever part is used
        (r"DFF\w*|DL\w*", FF),
        (r"MULT(9X9|18X18|36X36)|MULTALU\w*|MULTADDALU\w*|PADD\w+", DSP),
        (r"(SDP|DP|SP)(B|X9B|X9)?", BLOCK_RAM),
        (r"MUX2_\w+|GND|VCC", FREE),
    ),
    "MULT",
    "BSRAM",
)

FAMILIES = {family.name: family for family in (ECP5, XC7, ICE40, GOWIN)}
"""By name, as `vta synth --family` takes them."""
