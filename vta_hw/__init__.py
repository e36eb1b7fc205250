"""The machine in hardware, from the same description as everything else."""
