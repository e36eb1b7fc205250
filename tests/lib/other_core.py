"""A simulator that looks like the compiled core, and can be made to say something else."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simulator.machine import Simulator
from vta_isa.launch import Launch
from vta_isa.machine import Machine

Change = Callable[[Launch, NDArray[np.uint8]], Launch | None]


class OtherCore(Simulator):
    """Instead of ``VerilatedCore``: ``change`` may alter the launch and the DRAM it leaves."""

    def __init__(
        self, machine: Machine, waves: object = None, change: Change = lambda launch, dram: None
    ):
        super().__init__(machine, record_bursts=True, record_places=True)
        self.waves = waves
        self.change = change

    def launch(self, stream, dram, insn_address=0, *, record_bursts=True, record_places=True):
        assert record_bursts, "a comparison needs the bursts"
        assert record_places, "and the places"
        launch = super().launch(stream, dram, insn_address)
        return self.change(launch, dram) or launch

    def close(self):
        """There are no waves to complete."""
