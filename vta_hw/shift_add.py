"""Products without a multiplier: small ones, of which there is time to make one."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Signal, Value


class Terms:
    """Terms whose sum is a number modulo 2 ** ``bits``: ``terms[i]`` weighs 2 ** (i * ``step``)."""

    def __init__(self, terms: Sequence[Value], step: int, bits: int):
        self.terms = [term[: bits - i * step] for i, term in enumerate(terms) if i * step < bits]
        self.step = step
        self.bits = bits

    @classmethod
    def of_product(cls, number: Value, factor: Value, bits: int) -> "Terms":
        """A term per bit of ``factor``."""
        return cls([number & bit.replicate(len(number)) for bit in factor], 1, bits)

    def paired(self) -> "Terms":
        """Half as many, behind one level of adders."""
        sums = [
            Cat(low[: self.step], low[self.step :] + high)
            for low, high in zip(self.terms[::2], self.terms[1::2], strict=False)
        ]
        return Terms([*sums, *self.terms[len(self.terms) & ~1 :]], 2 * self.step, self.bits)

    def total(self) -> Value:
        """The sum, behind ceil(log2(terms)) levels of adders."""
        return self.terms[0] if len(self.terms) == 1 else self.paired().total()

    def registers(self, name: str) -> "Terms":
        """Signals for these terms."""
        signals = [Signal(len(term), name=f"{name}{i}") for i, term in enumerate(self.terms)]
        return Terms(signals, self.step, self.bits)

    def eq(self, others: "Terms") -> list:
        """Assignments of the terms of ``others`` to these, one by one."""
        return [one.eq(other) for one, other in zip(self.terms, others.terms, strict=True)]
