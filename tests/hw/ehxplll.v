
// A PLL for simulation: it copies its clock, and locks after eight cycles.
module EHXPLLL #(
    parameter PLLRST_ENA = "", INTFB_WAKE = "", STDBY_ENABLE = "", DPHASE_SOURCE = "",
    parameter CLKOP_ENABLE = "", FEEDBK_PATH = "",
    parameter CLKI_DIV = 1, CLKFB_DIV = 1, CLKOP_DIV = 1, CLKOP_CPHASE = 0, CLKOP_FPHASE = 0
) (
    input CLKI, CLKFB, RST, STDBY, PLLWAKESYNC, ENCLKOP,
    input PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP, PHASELOADREG,
    output CLKOP, LOCK
);
    reg [3:0] cycles = 0;
    always @(posedge CLKI) if (!cycles[3]) cycles <= cycles + 1;
    assign CLKOP = CLKI;
    assign LOCK = cycles[3];
endmodule
