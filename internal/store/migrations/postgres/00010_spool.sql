-- +goose Up

-- Mail that was acknowledged and whose reports are not stored yet, if the spool is in the
-- database. holder is a random number of the process that handles it. crashes is how many
-- processes have ended while they handled it, if this one ended now. charged names the teams
-- and the client network that the space is charged to.
CREATE TABLE spool (
    name     TEXT    NOT NULL PRIMARY KEY,
    holder   BIGINT  NOT NULL,
    crashes  INTEGER NOT NULL,
    charged  TEXT    NOT NULL,
    size     BIGINT  NOT NULL,
    envelope BYTEA   NOT NULL
);

CREATE TABLE spool_chunks (
    name    TEXT    NOT NULL,
    n       INTEGER NOT NULL,
    content BYTEA   NOT NULL,
    PRIMARY KEY (name, n)
);

-- The processes that handle mail in the spool. Each increases its beat every few seconds.
CREATE TABLE spool_holders (
    holder BIGINT NOT NULL PRIMARY KEY,
    beat   BIGINT NOT NULL
);
