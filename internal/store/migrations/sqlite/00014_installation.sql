-- +goose Up

-- Settings of the daemon that other commands on the same database must agree with.
CREATE TABLE installation (
    name  TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);

-- See the second migration.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('installation', 'sqlite_autoindex_installation_1', '1 1');
ANALYZE sqlite_schema;
