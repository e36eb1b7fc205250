"""The packing rule and single words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vta_isa import EncodingError, Field, Layout, Reserved
from vta_isa.layout import LayoutOverflow


def fields(*widths: int) -> list[Field]:
    return [Field(f"f{number}", width) for number, width in enumerate(widths)]


def starts_by_the_published_rule(widths: list[int], unit: int) -> list[int]:
    """Literally: stay if first and last bit share a unit, else go to the next unit."""
    position, starts = 0, []
    for width in widths:
        if position // unit != (position + width - 1) // unit:
            position = unit * (position // unit + 1)
        starts.append(position)
        position += width
    return starts


@given(st.lists(st.integers(1, 32), max_size=20))
def test_fields_start_where_the_published_rule_says(widths: list[int]) -> None:
    layout = Layout.packed("L", 1024, 64, fields(*widths))
    starts = [slot.start for slot in layout.slots.values()]
    assert starts == starts_by_the_published_rule(widths, 64)


@given(st.lists(st.integers(1, 32), max_size=20))
def test_every_bit_is_a_field_or_reserved(widths: list[int]) -> None:
    layout = Layout.packed("L", 1024, 64, fields(*widths))
    covered = [bit for start, part in layout for bit in range(start, start + part.width)]
    assert covered == list(range(1024))


def test_a_field_that_exactly_fills_a_unit_stays() -> None:
    layout = Layout.packed("L", 128, 64, fields(32, 32, 64))
    assert [slot.start for slot in layout.slots.values()] == [0, 32, 64]
    assert layout.reserved_mask == 0


def test_a_field_that_would_cross_moves_and_leaves_reserved_bits() -> None:
    layout = Layout.packed("L", 128, 64, fields(58, 16))
    assert layout.fields[1] == Reserved(6)
    assert layout.slots["f1"].start == 64


def test_fields_past_the_end_are_refused_by_name() -> None:
    with pytest.raises(LayoutOverflow, match=r"L.f2 would occupy bits 60..70 of a 64-bit word"):
        Layout.packed("L", 64, 64, fields(30, 30, 11))


def test_widths_that_do_not_add_up_are_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="fields cover 7 of 8 bits"):
        Layout("L", 8, (Field("a", 7),))


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("width", [1, 2, 14, 16, 32])
def test_the_edges_of_a_field_survive_and_what_lies_beyond_is_refused(
    width: int, signed: bool
) -> None:
    field = Field("a", width, signed=signed)
    layout = Layout.packed("L", 64, 64, [Field("before", 5), field])
    for value in (field.low, field.high, 0):
        assert layout.decode(layout.encode(a=value)) == {"before": 0, "a": value}
    for value in (field.low - 1, field.high + 1):
        with pytest.raises(EncodingError, match=rf"L.a = {value} does not fit {width} bit"):
            layout.encode(a=value)


def test_a_signed_field_reaches_as_far_as_two_s_complement() -> None:
    field = Field("imm", 16, signed=True)
    assert (field.low, field.high) == (-(1 << 15), (1 << 15) - 1)


def test_reserved_bits_are_ignored_when_read() -> None:
    layout = Layout.packed("L", 16, 16, fields(3))
    assert layout.decode(0xFFF8 | 5) == {"f0": 5}


def test_a_misspelt_field_is_answered_with_the_right_one() -> None:
    layout = Layout.packed("L", 16, 16, [Field("x_size", 3)])
    with pytest.raises(EncodingError, match="did you mean 'x_size'"):
        layout.encode(x_siz=1)


def test_a_message_says_what_came_what_fits_and_what_to_do() -> None:
    field = Field("x_size", 16, unit="entry", hint="split the tile")
    layout = Layout.packed("MEM", 16, 16, [field])
    with pytest.raises(EncodingError) as caught:
        layout.encode(x_size=70000)
    assert str(caught.value) == (
        "MEM.x_size = 70000 does not fit 16 bits (0..65535 entry); split the tile"
    )
