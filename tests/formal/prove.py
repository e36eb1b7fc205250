"""Every proof, every cover statement, every broken variant: ``make formal``.

    python tests/formal/prove.py [WORD ...]

With words, the proofs whose names hold one of them. One line per proof; status 1 if anything is
not as it should be.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lib"))

from formal.proof import Proof
from formal.proofs import PROOFS

ROW = "{:34} {:24} {:>8} {:>8} {:>10} {:>8}"


def line(proof: Proof) -> tuple[str, list[str]]:
    """What is printed of a proof, and what is wrong."""
    began = time.perf_counter()
    wrong = []
    holds = proof.prove()
    if not holds.holds:
        wrong.append(f"{proof.name} does not hold:\n{holds.log}")
    covered = proof.cover()
    if not covered.holds:
        wrong.append(f"{proof.name}: a situation is out of reach:\n{covered.log}")
    survivors = [name for name in proof.mutants if proof.survives(name).holds]
    wrong += [f"{proof.name}: nobody notices that {name}" for name in survivors]
    found = f"{len(proof.mutants) - len(survivors)} of {len(proof.mutants)}"
    seconds = time.perf_counter() - began
    text = ROW.format(
        proof.name,
        str(proof.method),
        "yes" if holds.holds else "NO",
        "all" if covered.holds else "NOT ALL",
        found if proof.mutants else "",
        f"{seconds:.0f} s",
    )
    return text, wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="WORD")
    words = parser.parse_args().words
    chosen = [proof for proof in PROOFS if not words or any(w in proof.name for w in words)]
    if not chosen:
        parser.error(f"no proof is called so; there are {', '.join(p.name for p in PROOFS)}")
    print(ROW.format("", "for", "holds", "covered", "broken", ""))
    failures: list[str] = []
    for proof in chosen:
        text, wrong = line(proof)
        print(text, flush=True)
        failures += wrong
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
