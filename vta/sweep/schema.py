"""The results file: one SQLite database whose every row is on disk before the next one."""

import sqlite3
from pathlib import Path

from .errors import SweepError

DATABASE = "results.sqlite"
SCHEMA_VERSION = "1"

# `counters` of a layer are stored as bare numbers; their names, once, in `meta`.
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS points (
    point        INTEGER PRIMARY KEY,
    workload     TEXT NOT NULL,
    machine      TEXT NOT NULL,
    machine_hash TEXT,
    axes         TEXT NOT NULL,
    compile      TEXT NOT NULL,
    status       TEXT NOT NULL,
    error        TEXT,
    objectives   TEXT NOT NULL,
    cycles       INTEGER,
    layers       TEXT NOT NULL,
    area         TEXT NOT NULL,
    seed         INTEGER NOT NULL,
    code         TEXT NOT NULL,
    wall_s       REAL NOT NULL,
    finished_at  TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS synthesis (
    machine_hash TEXT PRIMARY KEY,
    area         TEXT,
    error        TEXT
) WITHOUT ROWID;
"""


def open_database(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection; the file is made and given its tables unless ``read_only``."""
    if read_only:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    else:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a row survives a power cut
            connection.executescript(_TABLES)
        except sqlite3.Error:
            connection.close()
            raise
    connection.row_factory = sqlite3.Row
    return connection


def read_meta(connection: sqlite3.Connection) -> dict[str, str]:
    """What is known of the sweep as a whole; empty in a new file."""
    meta = {row["key"]: row["value"] for row in connection.execute("SELECT key, value FROM meta")}
    version = meta.get("schema", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise SweepError(
            f"the results file has format {version}, this version of vta reads {SCHEMA_VERSION}; "
            "read it with the version that wrote it, or sweep again into another folder"
        )
    return meta
