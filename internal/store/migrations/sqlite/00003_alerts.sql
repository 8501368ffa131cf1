-- +goose Up

-- What reports say about the mail of a domain on a day: the figures that alerts are
-- detected from, made with the senders of the day and stored for some weeks. changed_at is
-- when document was written last.
CREATE TABLE mail_days (
    team_id    BIGINT  NOT NULL REFERENCES teams (id),
    domain_id  BIGINT  NOT NULL,
    day        INTEGER NOT NULL,
    changed_at BIGINT  NOT NULL,
    document   TEXT    NOT NULL,
    PRIMARY KEY (team_id, domain_id, day)
) WITHOUT ROWID;

CREATE INDEX mail_days_by_day ON mail_days (team_id, day);
CREATE INDEX mail_days_changed ON mail_days (team_id, changed_at);

-- When the alerts of a team are detected next. A job claims the row by lease_until. One pass
-- judges some domains at a time, from the one after after_id on: those whose mail changed
-- since changed_at or, where full is set, all. began_at is when the pass began, full_at when
-- the last full one did.
CREATE TABLE alert_scans (
    team_id     INTEGER PRIMARY KEY REFERENCES teams (id),
    due_at      BIGINT  NOT NULL,
    lease_until BIGINT  NOT NULL,
    began_at    BIGINT  NOT NULL,
    after_id    BIGINT  NOT NULL,
    changed_at  BIGINT  NOT NULL,
    is_full     BOOLEAN NOT NULL,
    full_at     BIGINT  NOT NULL
);

-- The rules of a team; none are the defaults.
CREATE TABLE alert_rules (
    team_id  INTEGER PRIMARY KEY REFERENCES teams (id),
    document TEXT   NOT NULL
);

-- What the rules decided on each event: state is 'sent', 'suppressed', 'waiting' for others
-- of its group, or 'grouped' with them; reason says why. domain_id is 0 for none. The days
-- are those of what was detected, null for other events: so an incident is detected once.
CREATE TABLE alerts (
    team_id         BIGINT NOT NULL,
    seq             BIGINT NOT NULL, -- of the event
    kind            TEXT   NOT NULL,
    domain_id       BIGINT NOT NULL,
    subject         TEXT   NOT NULL,
    first_day       INTEGER,
    last_day        INTEGER,
    level           TEXT   NOT NULL,
    state           TEXT   NOT NULL,
    reason          TEXT   NOT NULL,
    send_at         BIGINT NOT NULL,
    acknowledged_at BIGINT NOT NULL DEFAULT 0,
    acknowledged_by TEXT   NOT NULL DEFAULT '',
    PRIMARY KEY (team_id, seq),
    FOREIGN KEY (team_id, seq) REFERENCES events (team_id, seq)
) WITHOUT ROWID;

CREATE UNIQUE INDEX alerts_once ON alerts (team_id, domain_id, kind, subject, first_day);
CREATE INDEX alerts_of_kind ON alerts (team_id, kind, send_at);
CREATE INDEX alerts_waiting ON alerts (send_at, team_id) WHERE state = 'waiting';

-- The figures of TLS reports are few among all shares.
CREATE INDEX shares_tls ON shares (team_id, domain_id, day) WHERE kind = 'tls';

-- The figures of days that are stored already are made once.
UPDATE team_days SET in_senders = -1;
