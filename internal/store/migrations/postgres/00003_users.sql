-- +goose Up

-- A migration may take longer than any other statement of ours should.
SET LOCAL statement_timeout = 0;

-- People who sign in on the web page. email is in lower case. password_hash is
-- '' where there is no password.
CREATE TABLE users (
    id            BIGINT  PRIMARY KEY,
    email         TEXT    NOT NULL COLLATE "C" UNIQUE,
    name          TEXT    NOT NULL,
    password_hash TEXT    NOT NULL,
    operator      BOOLEAN NOT NULL,
    created_at    BIGINT  NOT NULL,
    signed_in_at  BIGINT  NOT NULL
);

CREATE TABLE members (
    team_id    BIGINT NOT NULL REFERENCES teams (id),
    user_id    BIGINT NOT NULL REFERENCES users (id),
    role       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, user_id)
);

CREATE INDEX members_of_user ON members (user_id);

-- A session's secret is not here: hash is its SHA-256. team_id is the team that
-- the user looks at.
CREATE TABLE sessions (
    hash       BYTEA  NOT NULL PRIMARY KEY,
    user_id    BIGINT NOT NULL REFERENCES users (id),
    team_id    BIGINT REFERENCES teams (id),
    created_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    user_agent TEXT   NOT NULL,
    address    TEXT   NOT NULL
);

CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_by_use ON sessions (seen_at);

-- Links that let a person in once; hash is the SHA-256 of the secret in the link.
-- email is '' where the person says who they are. created_by has no reference:
-- the user may be gone.
CREATE TABLE invites (
    hash       BYTEA   NOT NULL PRIMARY KEY,
    email      TEXT    NOT NULL,
    team_id    BIGINT  REFERENCES teams (id),
    role       TEXT    NOT NULL,
    operator   BOOLEAN NOT NULL,
    created_by BIGINT,
    expires_at BIGINT  NOT NULL,
    used_at    BIGINT  NOT NULL
);

CREATE INDEX invites_of_team ON invites (team_id);
CREATE INDEX invites_by_email ON invites (email);
CREATE INDEX invites_by_expiry ON invites (expires_at);

-- Who a user is at an OpenID provider.
CREATE TABLE identities (
    issuer  TEXT   NOT NULL,
    subject TEXT   NOT NULL,
    user_id BIGINT NOT NULL REFERENCES users (id),
    PRIMARY KEY (issuer, subject)
);

CREATE INDEX identities_of_user ON identities (user_id);

-- Who changed what. team_id is null for the installation. user_id has no
-- reference, and actor says the same in words: the user may be gone.
CREATE TABLE audit (
    id      BIGINT PRIMARY KEY,
    team_id BIGINT REFERENCES teams (id),
    user_id BIGINT,
    actor   TEXT   NOT NULL,
    at      BIGINT NOT NULL,
    action  TEXT   NOT NULL,
    target  TEXT   NOT NULL,
    detail  TEXT   NOT NULL,
    address TEXT   NOT NULL
);

CREATE INDEX audit_of_team ON audit (team_id, at, id);
CREATE INDEX audit_by_time ON audit (at, id);
