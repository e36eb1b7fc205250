"""Tops for real boards: a machine that is complete on its FPGA, and the host's side of it."""
