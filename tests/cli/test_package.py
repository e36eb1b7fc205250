"""``import vta``: quick, and with every name it promises."""

import importlib

import pytest

import vta


@pytest.mark.parametrize("name", vta.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(vta, name) is not None
    assert name in dir(vta)


def test_names_are_those_of_the_modules_they_come_from() -> None:
    for name, module in vta._HOME.items():
        assert getattr(vta, name) is getattr(importlib.import_module(module), name)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'vta' has no attribute 'nothing'"):
        getattr(vta, "no" + "thing")
