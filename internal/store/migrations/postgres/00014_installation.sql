-- +goose Up

-- Settings of the daemon that other commands on the same database must agree with.
CREATE TABLE installation (
    name  TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);
