"""Workload descriptions: the shipped ones, files of a user's own, and what is refused."""

from pathlib import Path

import pytest

from vta.workloads import Conv2d, Dense, Workload, load_workload
from vta.workloads.load import KIND
from vta_isa.errors import WorkloadError
from vta_isa.presets import preset_names

DENSE = {"name": "a", "kind": "dense", "m": 1, "k": 2, "n": 3}
CONV = {
    "name": "c",
    "kind": "conv2d",
    "height": 5,
    "width": 4,
    "in_channels": 2,
    "out_channels": 3,
    "kernel": 3,
}


def test_resnet18_is_table_1_of_the_report() -> None:
    layers = {layer.name: layer for layer in load_workload("resnet18").layers}
    counts = {name: layer.count for name, layer in layers.items()}
    assert counts == dict(
        zip((f"C{n}" for n in range(1, 13)), (1, 4, 0, 1, 1, 3, 1, 1, 3, 1, 1, 3), strict=True)
    )
    for layer in layers.values():
        assert isinstance(layer, Conv2d)
        assert layer.padding == layer.kernel // 2  # SAME
        assert layer.out_height == layer.out_width == layer.height // layer.stride


def test_resnet18_without_c1_is_6_623_million_cycles_of_256_macs() -> None:
    workload = load_workload("resnet18")
    offloaded = workload.totals["C2-C12"]
    macs = sum(layer.count * layer.macs for layer in workload.layers if layer.name in offloaded)
    assert macs == 6_623_232 * 256


@pytest.mark.parametrize("name", preset_names(KIND))
def test_every_preset_loads_and_comes_back_from_json(name: str) -> None:
    workload = load_workload(name)
    assert workload.name == name
    assert workload.about
    assert load_workload(workload.as_json()) == workload


def test_one_layer_of_a_preset_is_run_once() -> None:
    picked = load_workload("resnet18/C3")
    assert [(layer.name, layer.count) for layer in picked.layers] == [("C3", 1)]
    assert picked.name == "resnet18/C3"
    assert picked.totals == {}


def test_a_file_of_ones_own_is_named_after_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("layers: [{name: a, kind: dense, m: 1, k: 2, n: 3}]")
    for spec in (path, str(path), f"{path}/a"):
        workload = load_workload(spec)
        assert workload.name.startswith("mine")
        assert isinstance(workload.layers[0], Dense)


def test_a_workload_is_taken_as_it_is() -> None:
    workload = load_workload("matmul")
    assert load_workload(workload) is workload


@pytest.mark.parametrize(
    ("height", "kernel", "stride", "padding", "out_height"),
    [(1, 1, 1, 0, 1), (5, 3, 1, 0, 3), (5, 3, 2, 1, 3), (4, 3, 2, 1, 2), (3, 5, 1, 1, 1)],
)
def test_output_size_of_a_convolution(
    height: int, kernel: int, stride: int, padding: int, out_height: int
) -> None:
    layer = Conv2d(
        name="c",
        height=height,
        width=height + 1,
        in_channels=2,
        out_channels=3,
        kernel=kernel,
        stride=stride,
        padding=padding,
    )
    assert layer.out_height == out_height
    assert layer.macs == 3 * out_height * layer.out_width * 2 * kernel**2


REFUSED = [
    ("resnt18", "there is no workload 'resnt18'; did you mean 'resnet18'?"),
    ("resnet18/c2", "workload resnet18 has no layer 'c2'; did you mean 'C2'?"),
    ("resnet/C2", "there is no workload 'resnet/C2'; did you mean 'resnet18'?"),
    ("nowhere/matmull.yaml", "nowhere/matmull.yaml: no such workload file; did you mean"),
    ("nowhere.yaml/x", "nowhere.yaml: no such workload file; presets: matmul, resnet18"),
    ({}, "workload: layers is missing"),
    ({"layers": []}, "layers = [] is not allowed"),
    ({"layer": [DENSE], "layers": [DENSE]}, "unknown key 'layer'; did you mean 'layers'?"),
    ({"layers": [3]}, "layers[0] is int 3 where a mapping is expected"),
    ({"layers": [{"name": "a"}]}, "layers[0] (a) has no kind; known are conv2d, dense, add"),
    ({"layers": [DENSE | {"kind": "dens"}]}, "unknown kind 'dens'; did you mean 'dense'?"),
    ({"layers": [DENSE, CONV | {"strde": 2}]}, "layers[1] (c): unknown key 'strde'; did you mean"),
    ({"layers": [DENSE, DENSE]}, "2 layers are named 'a'"),
    ({"layers": [DENSE | {"name": "a/b"}]}, "name = 'a/b' is not allowed"),
    ({"layers": [DENSE | {"m": 0}]}, "m = 0 is not allowed"),
    ({"layers": [DENSE | {"m": (1 << 16) + 1}]}, "m = 65537 is not allowed"),
    ({"layers": [DENSE | {"m": "4"}]}, "m = '4' is not allowed"),
    ({"layers": [DENSE | {"m": True}]}, "m = True is not allowed"),
    ({"layers": [DENSE | {"count": -1}]}, "count = -1 is not allowed"),
    ({"layers": [CONV | {"kernel": 6}]}, "kernel = 6 is larger than the padded height 5 + 2 x 0"),
    (
        {"layers": [DENSE | {"k": 1 << 16, "n": 1 << 16}]},
        "weights would have 4,294,967,296 elements; at most 268,435,456 can be addressed",
    ),
    (
        {"layers": [DENSE | {"epilogue": {"shft": 1}}]},
        "unknown key 'epilogue.shft'; did you mean 'shift'?",
    ),
    ({"layers": [DENSE | {"epilogue": {"shift": 32}}]}, "use auto or a number in 0..31"),
    ({"layers": [DENSE | {"epilogue": {"clip": [2, 1]}}]}, "[2, 1] is empty; put the lower"),
    ({"layers": [DENSE | {"epilogue": {"clip": [0, 1 << 15]}}]}, "in -32768..32767"),
    (
        {"layers": [{"name": "a", "kind": "clip", "length": 1, "low": 2, "high": 1}]},
        "low = 2 is above high = 1",
    ),
    (
        {"layers": [DENSE], "totals": {"all": ["A", "b"]}},
        "totals.all: there is no layer 'A'; did you mean 'a'?",
    ),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused_is_named(spec: str | dict[str, object], message: str) -> None:
    with pytest.raises(WorkloadError) as refusal:
        load_workload(spec)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "holds nothing where a mapping"),
        (b"- 1", "holds list [1] where a mapping"),
        (b"layers: [", "not YAML: "),
        (b"layers: []\nlayers: []", "key 'layers' is given twice"),
        (b"name: \xff", "not UTF-8 text at byte 6"),
    ],
)
def test_a_file_that_is_no_description_is_named(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(text)
    with pytest.raises(WorkloadError) as refusal:
        load_workload(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_unknown_layer_of_a_file_is_named(tmp_path: Path) -> None:
    workload = Workload("mine", load_workload("matmul").layers)
    with pytest.raises(WorkloadError, match="workload mine has no layer 'squar'; did you mean"):
        workload.pick("squar")
