"""A host's serial port in cocotb: bytes of blocking code to bits on wires, and back."""

from collections import deque

import cocotb
from cocotb.task import resume
from cocotb.triggers import Event, FallingEdge, First, Timer


class SerialPort:
    """``write`` and ``read`` as of pyserial's port, for code under ``cocotb.task.bridge``.

    ``out`` is the wire to the board, ``back`` the one from it; bits last ``bit_ns``. ``read`` gives
    up after ``timeout_ns`` without another byte.
    """

    def __init__(self, out, back, bit_ns: int, timeout_ns: int):
        self.out, self.back = out, back
        self.bit_ns, self.timeout_ns = bit_ns, timeout_ns
        self.received: deque[int] = deque()
        self.arrived = Event()
        out.value = 1
        cocotb.start_soon(self._listen())

    def write(self, data: bytes) -> int:
        resume(self._send)(data)
        return len(data)

    def read(self, size: int) -> bytes:
        return resume(self._take)(size)

    async def _send(self, data: bytes) -> None:
        for byte in data:
            frame = byte << 1 | 0x200  # start bit, eight bits, stop bit
            bits = [frame >> i & 1 for i in range(10)]
            while bits:  # equal bits behind each other are one event
                length = next((i for i, bit in enumerate(bits) if bit != bits[0]), len(bits))
                self.out.value = bits[0]
                await Timer(length * self.bit_ns, unit="ns")
                del bits[:length]

    async def _take(self, size: int) -> bytes:
        while len(self.received) < size:
            self.arrived.clear()
            timeout = Timer(self.timeout_ns, unit="ns")
            if await First(self.arrived.wait(), timeout) is timeout:
                break
        return bytes(self.received.popleft() for _ in range(min(size, len(self.received))))

    async def _listen(self) -> None:
        while True:
            await FallingEdge(self.back)
            await Timer(self.bit_ns // 2, unit="ns")
            assert int(self.back.value) == 0, "the start bit is too short"
            byte = 0
            for i in range(8):
                await Timer(self.bit_ns, unit="ns")
                byte |= int(self.back.value) << i
            await Timer(self.bit_ns, unit="ns")
            assert int(self.back.value) == 1, "there is no stop bit"
            self.received.append(byte)
            self.arrived.set()
