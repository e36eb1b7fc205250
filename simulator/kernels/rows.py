"""What the kernels of GEMM are told of the loop that they run themselves."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rows:
    """The innermost loop: how many entries, and the bytes from one to the next, as IR values."""

    count: str
    acc_stride: str
    inp_stride: str
