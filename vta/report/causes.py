"""The causes of ``vta_isa.counters`` in words."""


def phrase(cause: str) -> str:
    """``wait_dram`` → ``wait for dram``, ``busy_gemm`` → ``busy: gemm``, ``wait_token_full`` →
    ``token queue full``."""
    match cause.split("_"):
        case ["wait", "token", "full"]:
            return "token queue full"
        case ["wait", "queue", "full"]:
            return "command queue full"
        case ["wait", *what]:
            return f"wait for {' '.join(what)}"
        case ["busy", what]:
            return f"busy: {what}"
    return cause
