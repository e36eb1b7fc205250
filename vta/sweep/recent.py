"""A memory of the values that were used last."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """Keeps the ``most`` values used last; unlike ``functools.lru_cache``, the key is separate
    from what it takes to make the value."""

    def __init__(self, most: int):
        self.most = most
        self._values: dict[Hashable, V] = {}

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value kept under ``key``, else that of ``make``, kept unless it raises."""
        if key in self._values:
            value = self._values.pop(key)
        else:
            value = make()
            if len(self._values) >= self.most:
                del self._values[next(iter(self._values))]
        self._values[key] = value  # now the youngest
        return value

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
