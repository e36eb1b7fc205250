"""Everything that is proven."""

from . import bursts, csr, gate, queue, read_port, store, token_queue
from .proof import Proof

PROOFS: tuple[Proof, ...] = (
    *token_queue.PROOFS,
    *queue.PROOFS,
    *bursts.PROOFS,
    *read_port.PROOFS,
    *store.PROOFS,
    *gate.PROOFS,
    *csr.PROOFS,
)


def table() -> str:
    """The table of docs/formal.md."""
    rows = ["| component | what holds | for | broken variants found |", "|---|---|---|---|"]
    for proof in PROOFS:
        component = f"{proof.name} (`{proof.component.__name__}`)"
        broken = "; ".join(proof.mutants)
        rows.append(f"| {component} | {proof.claims} | {proof.method} | {broken} |")
    return "\n".join(rows)
