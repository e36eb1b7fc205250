"""The machine of ``vta_isa`` in software: what every instruction means, and when it happens."""
