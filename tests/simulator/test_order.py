"""The order that stages and tokens allow, and the deadlocks they do not."""

import machines
import numpy as np
import pytest
from programs import random_program

from simulator.order import execution_order, token_flow, tokens_after
from vta_isa.enums import AluOp, Stage, TokenQueue
from vta_isa.errors import DeadlockError
from vta_isa.insn import alu, finish, noop, records

MACHINE = machines.machine("block8")
LOAD, COMPUTE, STORE = Stage.LOAD, Stage.COMPUTE, Stage.STORE


def order_of(*insns, machine=MACHINE, tokens=(0, 0, 0, 0)):
    return execution_order(records([*insns, finish()]), machine, tokens).tolist()


def with_token_queues(depth):
    return MACHINE.replace(queues={"token": depth})


def test_each_flag_moves_a_token_through_the_queue_between_its_stages():
    table = records(
        [
            noop(LOAD, pop_next=True, push_next=True),
            noop(COMPUTE, pop_prev=True, push_prev=True),
            alu(AluOp.ADD, uops=(0, 0), pop_next=True, push_next=True),
            noop(STORE, pop_prev=True, push_prev=True),
            finish(pop_prev=True, pop_next=True, push_prev=True, push_next=True),
        ]
    )
    pops, pushes = token_flow(table)
    queues = [
        [[TokenQueue(q).name for q in np.flatnonzero(row)] for row in flow]
        for flow in (pops, pushes)
    ]
    into, out = ["LOAD_TO_COMPUTE", "STORE_TO_COMPUTE"], ["COMPUTE_TO_LOAD", "COMPUTE_TO_STORE"]
    assert queues[0] == [["COMPUTE_TO_LOAD"], into[:1], into[1:], ["COMPUTE_TO_STORE"], into]
    assert queues[1] == [["LOAD_TO_COMPUTE"], out[:1], out[1:], ["STORE_TO_COMPUTE"], out]


@pytest.mark.parametrize("name", machines.NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_run_in_program_order_and_claim_every_token(name, seed):
    program = random_program(np.random.default_rng(seed), machines.machine(name))
    order = execution_order(program.table, program.machine)
    np.testing.assert_array_equal(order, np.arange(len(program.table)), err_msg=f"{seed=}")
    assert tokens_after(program.table, (0, 0, 0, 0)) == (0, 0, 0, 0)


def test_tokens_of_an_earlier_launch_count():
    pop = noop(COMPUTE, pop_prev=True)
    assert order_of(pop, tokens=(1, 0, 0, 0)) == [0, 1]
    table = records([pop, finish(push_next=True)])
    assert tokens_after(table, (1, 2, 3, 4)) == (0, 2, 4, 4)
    with pytest.raises(DeadlockError):
        order_of(pop, pop, tokens=(1, 9, 9, 9))


def test_an_instruction_is_postponed_until_its_token_is_there():
    program = [
        noop(LOAD, pop_next=True),  # waits for insn 3
        noop(LOAD),  # waits behind insn 0
        noop(COMPUTE, pop_next=True),  # waits for insn 4
        noop(COMPUTE, push_prev=True),
        noop(STORE, push_prev=True),
    ]
    assert order_of(*program) == [4, 2, 3, 0, 1, 5]


def test_the_lowest_instruction_number_goes_first():
    program = [noop(COMPUTE, pop_next=True), noop(LOAD), noop(STORE, push_prev=True), noop(LOAD)]
    assert order_of(*program) == [1, 2, 0, 3, 4]


def test_a_full_token_queue_stops_its_pusher_until_there_is_room():
    program = [
        *[noop(LOAD, push_next=True)] * 3,
        *[noop(COMPUTE, pop_prev=True)] * 3,
    ]
    assert order_of(*program, machine=with_token_queues(3)) == [0, 1, 2, 3, 4, 5, 6]
    assert order_of(*program, machine=with_token_queues(2)) == [0, 1, 2, 3, 4, 5, 6]
    # insn 1 is done but cannot give its token, so insn 2 must wait for insn 3
    assert order_of(*program, machine=with_token_queues(1)) == [0, 1, 3, 2, 4, 5, 6]


def test_tokens_without_room_are_a_deadlock():
    program = [noop(LOAD, push_next=True)] * 3
    assert order_of(*program[:2], machine=with_token_queues(2)) == [0, 1, 2]
    with pytest.raises(DeadlockError, match="cannot push its token load -> compute: 2 are"):
        order_of(*program, machine=with_token_queues(2))


def test_the_message_of_a_deadlock_shows_every_head_and_the_missing_token():
    program = [
        noop(STORE),
        noop(LOAD, pop_next=True, push_next=True),
        alu(AluOp.ADD, uops=(0, 1), pop_prev=True, pop_next=True, push_prev=True),
    ]
    with pytest.raises(DeadlockError) as caught:
        order_of(*program)
    assert str(caught.value) == (
        "deadlock: no stage can go on\n"
        "  load: insn 1 (LOAD INP) waits for a token compute -> load\n"
        "  compute: insn 2 (ALU ADD) waits for a token load -> compute, store -> compute\n"
        "  store: has nothing left to do\n"
        "every pop needs a push on the other side; see `vta disasm`"
    )
    assert caught.value.insn == 1


def test_finish_waits_like_any_other_instruction():
    table = records([finish(pop_next=True)])
    with pytest.raises(DeadlockError, match=r"insn 0 \(FINISH\) waits for a token store ->"):
        execution_order(table, MACHINE)
    assert execution_order(table, MACHINE, (0, 0, 0, 1)).tolist() == [0]


def test_a_long_stream_that_is_not_in_program_order():
    """Every second instruction waits for the one after it."""
    pair = [noop(LOAD, pop_next=True), noop(COMPUTE, push_prev=True)]
    got = order_of(*pair * 2000)
    assert got == [n for k in range(0, 4000, 2) for n in (k + 1, k)] + [4000]
