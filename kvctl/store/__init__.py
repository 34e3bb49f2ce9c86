"""DuckDB: what was collected, as tables that answer questions.

Owns: the tables and views (schema.sql; `events` from telemetry.schema), opening and recovering the
file, inserting by Arrow, and reading under guard.
Does not know: sockets, segments, engines. One process writes; its other threads read through
cursors. The file is derived: when it is damaged it is set aside and made again from the segments.
May import: telemetry, kvctl.table, kvctl.errors. Loads duckdb and pyarrow.
"""
