"""Every exception a user may meet descends from ``VtaError``."""


class VtaError(Exception):
    """Something the user can put right; the message says where, what came, what is allowed."""


class MachineError(VtaError):
    """A machine description that is malformed, or that the instruction set cannot encode."""


class EncodingError(VtaError):
    """A field value that does not fit its bits."""


class AssemblyError(VtaError):
    """Assembly text that does not parse; the message names line and column."""


class StreamError(VtaError):
    """An instruction stream that cannot run on the machine.

    ``insn`` is the number of the offending instruction, or None where the stream as a whole is at
    fault.
    """

    def __init__(self, message: str, insn: int | None = None):
        super().__init__(message)
        self.insn = insn


class DeadlockError(StreamError):
    """A stream whose stages wait for tokens that never come."""


class RuntimeCallError(VtaError):
    """A runtime call with arguments or in a state the contract does not allow."""


class WorkloadError(VtaError):
    """A workload that is malformed or cannot be mapped onto the machine."""


class ScheduleError(VtaError):
    """A schedule primitive applied where it is not legal; the message names loop and reason."""


class CompileError(VtaError):
    """A scheduled program that cannot be lowered; the message shows the statement."""
