"""Whose is a cell: the rules on netlists small enough to draw."""

from vta_hw.synth.netlist import Netlist
from vta_hw.synth.report import Area, module_tree
from vta_hw.synth.rtlil_text import before_flatten, instance_path

MODULES = frozenset({"top", "top.a", "top.a.b", "top.c"})


def cell(kind: str, inputs: list[int], outputs: list[int | str], src: str = "") -> dict:
    return {
        "type": kind,
        "attributes": {"src": src} if src else {},
        "port_directions": {"I": "input", "O": "output"},
        "connections": {"I": inputs, "O": outputs},
    }


def owners(cells: dict) -> dict[str, str]:
    netlist = Netlist(cells, MODULES, frozenset({"RAM"}))
    return {name: netlist.owner(name) for name in cells}


def test_source_decides_even_among_others() -> None:
    cells = {
        "x": cell("FF", [1], [2], "lib.v:3|top.a.b|top.c"),
        "y": cell("DSP", [1], [3], "top.c#$7"),
    }
    assert owners(cells) == {"x": "top.a.b", "y": "top.c"}


def test_a_memory_is_known_by_its_name() -> None:
    assert owners({"a.b.words.0.0": cell("RAM", [1], [2])}) == {"a.b.words.0.0": "top.a.b"}


def test_a_lut_belongs_to_what_most_of_its_readers_belong_to() -> None:
    cells = {
        "lut": cell("LUT", [1], [2]),
        "p": cell("FF", [2], [3], "top.c"),
        "q": cell("FF", [2], [4], "top.a"),
        "r": cell("FF", [2], [5], "top.a"),
    }
    assert owners(cells)["lut"] == "top.a"


def test_through_luts_the_nearest_register_counts() -> None:
    cells = {
        "first": cell("LUT", [1], [2]),
        "second": cell("LUT", [2], [3]),
        "far": cell("LUT", [3], [4]),
        "near": cell("FF", [3], [5], "top.c"),
        "behind": cell("FF", [4], [6], "top.a"),
    }
    assert owners(cells)["first"] == "top.c"
    assert owners(cells)["far"] == "top.a"


def test_what_leaves_the_design_or_turns_in_circles_is_the_tops() -> None:
    cells = {"out": cell("LUT", [1], [2, "x"]), "ring": cell("LUT", [3], [3])}
    assert owners(cells) == {"out": "top", "ring": "top"}


def test_paths_are_instance_names() -> None:
    assert instance_path("top") == ""
    assert instance_path("top.wgt$230.bank0") == "wgt.bank0"
    assert instance_path("top.inside", "inside") == ""
    assert instance_path("top.inside.load", "inside") == "load"
    assert instance_path("top.inside2", "inside") is None
    assert instance_path("top", "inside") is None


def test_names_of_the_flat_design_are_taken_apart() -> None:
    assert before_flatten("top/$5") == ("top", "$5")
    assert before_flatten("top/$flatten\\load.\\loader.$5") == ("top.load.loader", "$5")


def test_tree_sums_upwards_and_knows_empty_modules() -> None:
    tree = module_tree({"a.b": Area(lut=1), "a": Area(ff=2), "": Area(dsp=3)}, ["a.b", "c"])
    assert [(m.path, m.own, m.all) for m in tree] == [
        ("", Area(dsp=3), Area(lut=1, ff=2, dsp=3)),
        ("a", Area(ff=2), Area(lut=1, ff=2)),
        ("a.b", Area(lut=1), Area(lut=1)),
        ("c", Area(), Area()),
    ]
