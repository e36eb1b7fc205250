"""The version of the whole kit; the wheel, the command and saved results quote it from here."""

__version__ = "0.1.0"
"""Of the kit, as in ``vta --version``."""
