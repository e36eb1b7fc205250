"""The checker: a stream proven free of races, deadlocks and stray accesses before it runs."""

from .checker import Checker, check
from .findings import CheckError, Code, Finding, Severity, errors

__all__ = ["CheckError", "Checker", "Code", "Finding", "Severity", "check", "errors"]
