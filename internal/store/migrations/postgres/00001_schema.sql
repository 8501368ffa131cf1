-- +goose Up

-- The schema has two parts.
--
-- Directories belong to the installation: its settings, teams, users, and the tables
-- through which a secret, an address or a user leads to a team. Their keys are unique in
-- the whole installation.
--
-- Tenant tables hold what a team has. Their primary keys and unique constraints begin
-- with team_id, references between them are composite, and every query of a team names
-- team_id for each of them. So the rows of a team can be on a server of their own.
--
-- Times are seconds since 1970 UTC, 0 for none; days are days since 1970-01-01 UTC.
-- Ids are random, except those of reports, rejected items and audit entries, which begin
-- with the time of their making: these tables can be partitioned by ranges of ids.

-- A migration may take longer than any other statement.
SET LOCAL statement_timeout = 0;

-- ------------------------------------------------------------------ Directories

-- The oldest version of the schema whose programs can use this one. A program that knows an
-- older schema than this starts if it knows at least that version. Every later migration sets
-- it: UPDATE schema_compatibility SET oldest = 1;
CREATE TABLE schema_compatibility (
    oldest BIGINT NOT NULL PRIMARY KEY
);
INSERT INTO schema_compatibility (oldest) VALUES (1);

-- Settings of the daemon that other commands on the same database must agree with.
CREATE TABLE installation (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- retention_… is the retention of data in seconds: 0 is forever, -1 as configured. quota_… is the
-- team's quota: 0 is unlimited, -1 as configured. A deleted team is a hidden row without a name until
-- all its rows are removed.
CREATE TABLE teams (
    id               BIGINT  PRIMARY KEY,
    name             TEXT    NOT NULL COLLATE "C" UNIQUE, -- sorts by byte
    api              BOOLEAN NOT NULL, -- may use the API
    created_at       BIGINT  NOT NULL,
    retention_originals BIGINT  NOT NULL DEFAULT -1,
    retention_records   BIGINT  NOT NULL DEFAULT -1,
    retention_counters  BIGINT  NOT NULL DEFAULT -1,
    quota_domains    BIGINT  NOT NULL DEFAULT -1,
    quota_stored     BIGINT  NOT NULL DEFAULT -1,
    quota_unreadable BIGINT  NOT NULL DEFAULT -1,
    quota_reports    BIGINT  NOT NULL DEFAULT -1,
    quota_mailboxes  BIGINT  NOT NULL DEFAULT -1,
    second_factor    BOOLEAN NOT NULL DEFAULT FALSE, -- members need one
    approval         BOOLEAN NOT NULL DEFAULT FALSE, -- publishing managed records needs it
    deleted_at       BIGINT  NOT NULL DEFAULT 0
);

-- Users of the web page. email is in lower case; password_hash is '' for a user without
-- a password. second_factor is true if the user signs in with one: totp is the sealed secret of an
-- authenticator app, '' for none, and totp_used the period of the last code, which works once.
-- challenge is when the last challenge that a passkey answered was made.
CREATE TABLE users (
    id            BIGINT  PRIMARY KEY,
    email         TEXT    NOT NULL COLLATE "C" UNIQUE,
    name          TEXT    NOT NULL,
    password_hash TEXT    NOT NULL,
    operator      BOOLEAN NOT NULL,
    created_at    BIGINT  NOT NULL,
    signed_in_at  BIGINT  NOT NULL,
    verified_at   BIGINT  NOT NULL DEFAULT 0, -- when the user proved to receive mail at email
    second_factor BOOLEAN NOT NULL DEFAULT FALSE,
    totp          BYTEA   NOT NULL DEFAULT '',
    totp_used     BIGINT  NOT NULL DEFAULT 0,
    challenge     BIGINT  NOT NULL DEFAULT 0
);

-- What a user signs in with. credential_id is chosen by the authenticator, and record has the public
-- key, the flags and the counter of signatures.
CREATE TABLE passkeys (
    id            BIGINT PRIMARY KEY,
    user_id       BIGINT NOT NULL REFERENCES users (id),
    credential_id BYTEA  NOT NULL UNIQUE,
    name          TEXT   NOT NULL,
    record        BYTEA  NOT NULL,
    created_at    BIGINT NOT NULL,
    used_at       BIGINT NOT NULL
);

CREATE INDEX passkeys_of_user ON passkeys (user_id);

-- Codes that replace the second factor once. hash is the SHA-256 of the code.
CREATE TABLE recovery_codes (
    user_id BIGINT NOT NULL REFERENCES users (id),
    hash    BYTEA   NOT NULL,
    PRIMARY KEY (user_id, hash)
);

-- The subject of an OpenID provider that a user signs in as.
CREATE TABLE identities (
    issuer  TEXT   NOT NULL,
    subject TEXT   NOT NULL,
    user_id BIGINT NOT NULL REFERENCES users (id),
    PRIMARY KEY (issuer, subject)
);

CREATE INDEX identities_of_user ON identities (user_id);

CREATE TABLE members (
    team_id    BIGINT NOT NULL REFERENCES teams (id),
    user_id    BIGINT NOT NULL REFERENCES users (id),
    role       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    by_group   BOOLEAN NOT NULL DEFAULT FALSE, -- it follows the groups at the identity provider
    PRIMARY KEY (team_id, user_id)
);

CREATE INDEX members_of_user ON members (user_id);

-- hash is the SHA-256 of the session's secret. team_id is the team that the user has
-- selected.
CREATE TABLE sessions (
    hash       BYTEA  NOT NULL PRIMARY KEY,
    user_id    BIGINT NOT NULL REFERENCES users (id),
    team_id    BIGINT REFERENCES teams (id),
    created_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    user_agent TEXT   NOT NULL,
    address    TEXT   NOT NULL,
    proved_at  BIGINT NOT NULL, -- when the user last proved who they are
    provider_session TEXT NOT NULL DEFAULT '' -- its id at the identity provider
);

CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_by_use ON sessions (seen_at);

-- The logout tokens of the identity provider that were used, by the SHA-256 of their ids.
CREATE TABLE logout_tokens (
    hash       BYTEA  NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

CREATE INDEX logout_tokens_by_expiry ON logout_tokens (expires_at);

-- The browsers that a user signed in with. hash is the SHA-256 of a random cookie.
CREATE TABLE browsers (
    user_id BIGINT NOT NULL REFERENCES users (id),
    hash    BYTEA  NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, hash)
);

CREATE INDEX browsers_by_use ON browsers (seen_at);

-- Links that admit a user once. hash is the SHA-256 of the secret in the link; email is '' if
-- anyone may use the link. created_by has no reference: the user may be gone.
CREATE TABLE invites (
    hash       BYTEA   NOT NULL PRIMARY KEY,
    email      TEXT    NOT NULL,
    team_id    BIGINT  REFERENCES teams (id),
    role       TEXT    NOT NULL,
    operator   BOOLEAN NOT NULL,
    created_by BIGINT,
    token_id   BIGINT, -- the token that created it
    mailed     BOOLEAN NOT NULL, -- using it proves that the user receives mail at email
    expires_at BIGINT  NOT NULL,
    used_at    BIGINT  NOT NULL
);

CREATE INDEX invites_of_team ON invites (team_id);
CREATE INDEX invites_by_email ON invites (email);
CREATE INDEX invites_by_expiry ON invites (expires_at);

-- Links that were mailed to a user, each for one use and removed then. hash is the SHA-256 of the secret
-- in the link, email what it was mailed to.
CREATE TABLE mailed_links (
    hash       BYTEA  NOT NULL PRIMARY KEY,
    kind       TEXT   NOT NULL,
    user_id    BIGINT NOT NULL REFERENCES users (id),
    email      TEXT   NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX mailed_links_of_user ON mailed_links (user_id);
CREATE INDEX mailed_links_by_expiry ON mailed_links (expires_at);

-- hash is the SHA-256 of the token's secret. created_by is the user who created it, or whose token
-- did; it has no reference: the user may be gone. networks, separated by spaces, are where it may be
-- used from, '' is everywhere; used_from is the address of the last use.
CREATE TABLE tokens (
    id         BIGINT PRIMARY KEY,
    team_id    BIGINT NOT NULL REFERENCES teams (id),
    name       TEXT   NOT NULL,
    hash       BYTEA  NOT NULL UNIQUE,
    scope      TEXT   NOT NULL,
    created_by BIGINT,
    token_id   BIGINT, -- the token that created it, which is revoked with all that it created
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL,
    networks   TEXT   NOT NULL,
    used_from  TEXT   NOT NULL
);

CREATE INDEX tokens_of_team ON tokens (team_id, created_at);
CREATE INDEX tokens_of_token ON tokens (team_id, token_id) WHERE token_id IS NOT NULL;

-- The idempotency keys of requests. hash is the SHA-256 of the key, request the HMAC of the request, answer
-- its answer, '' if it was too large. claimed_until is the end of the claim of a request that is under
-- way, 0 after its answer.
CREATE TABLE idempotency_keys (
    team_id       BIGINT NOT NULL REFERENCES teams (id),
    hash          BYTEA  NOT NULL,
    claimed_until BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    request       BYTEA  NOT NULL,
    answer        BYTEA  NOT NULL,
    PRIMARY KEY (team_id, hash)
);

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

-- The reporting addresses: mailbox is the local part, which belongs to one domain only. The
-- address of a deleted domain is retired; a domain that is added again within 90 days gets its
-- address back.
CREATE TABLE addresses (
    mailbox    TEXT   NOT NULL COLLATE "C" PRIMARY KEY,
    team_id    BIGINT NOT NULL REFERENCES teams (id),
    name       TEXT   NOT NULL COLLATE "C", -- of the domain
    domain_id  BIGINT NOT NULL,
    retired_at BIGINT NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX addresses_of_team ON addresses (team_id, name);
CREATE INDEX addresses_retired ON addresses (retired_at) WHERE retired_at > 0;

-- Addresses for test mail, one for each user of a team: mailbox is the local part, user_id is 0
-- for tokens. mails has the results as JSON, received their number. Expired rows are deleted.
CREATE TABLE test_addresses (
    mailbox    TEXT   NOT NULL COLLATE "C" PRIMARY KEY,
    team_id    BIGINT NOT NULL REFERENCES teams (id),
    user_id    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    received   BIGINT NOT NULL,
    mails      TEXT   NOT NULL
);

CREATE UNIQUE INDEX test_addresses_of_user ON test_addresses (team_id, user_id);
CREATE INDEX test_addresses_by_expiry ON test_addresses (expires_at);

-- Mailboxes that are read by IMAP. secret is sealed with a key that is not in the database. A
-- mailbox with paused_at > 0 is not read; error is the reason. crashes counts the panics of
-- its reader since it was added or resumed.
CREATE TABLE mailboxes (
    id           BIGINT  NOT NULL,
    team_id      BIGINT  NOT NULL REFERENCES teams (id),
    host         TEXT    NOT NULL,
    port         INTEGER NOT NULL,
    security     TEXT    NOT NULL,
    username     TEXT    NOT NULL,
    method       TEXT    NOT NULL,
    secret       BYTEA   NOT NULL,
    folder       TEXT    NOT NULL,
    after        TEXT    NOT NULL,
    move_to      TEXT    NOT NULL,
    uid_validity BIGINT  NOT NULL DEFAULT 0,
    last_uid     BIGINT  NOT NULL DEFAULT 0,
    created_at   BIGINT  NOT NULL,
    seen_at      BIGINT  NOT NULL DEFAULT 0, -- the last time it was read
    error        TEXT    NOT NULL DEFAULT '',
    error_at     BIGINT  NOT NULL DEFAULT 0,
    crashes      INTEGER NOT NULL DEFAULT 0,
    paused_at    BIGINT  NOT NULL DEFAULT 0,
    lease_until  BIGINT  NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, id)
);

CREATE INDEX mailboxes_of_team ON mailboxes (team_id, created_at);

-- The audit log. team_id is null for the installation. user_id has no reference, and actor
-- repeats the user as text: the user may be gone. Entries of a team are numbered without gaps by
-- seq, and mac depends on the entry and the previous mac.
CREATE TABLE audit (
    id      BIGINT PRIMARY KEY,
    team_id BIGINT REFERENCES teams (id),
    user_id BIGINT,
    actor   TEXT   NOT NULL,
    at      BIGINT NOT NULL,
    action  TEXT   NOT NULL,
    target  TEXT   NOT NULL,
    detail  TEXT   NOT NULL,
    address TEXT   NOT NULL,
    seq     BIGINT NOT NULL,
    mac     BYTEA NOT NULL
);

CREATE INDEX audit_chain ON audit (team_id, seq);
CREATE INDEX audit_of_team ON audit (team_id, at, id);
CREATE INDEX audit_by_time ON audit (at, id);

-- The newest entry of each team's audit log, and the newest that the retention has removed from it.
-- team_id is 0 for the installation. seal depends on the other columns.
CREATE TABLE audit_chains (
    team_id     BIGINT NOT NULL PRIMARY KEY,
    seq         BIGINT NOT NULL,
    mac         BYTEA NOT NULL,
    removed_seq BIGINT NOT NULL,
    removed_mac BYTEA NOT NULL,
    seal        BYTEA NOT NULL
);

-- Earlier keys of the audit log, by their names. content is encrypted.
CREATE TABLE audit_keys (
    name    TEXT  NOT NULL PRIMARY KEY,
    content BYTEA NOT NULL
);

-- The reverse DNS names of addresses that send mail.
CREATE TABLE reverse_names (
    address   TEXT   NOT NULL PRIMARY KEY,
    name      TEXT   NOT NULL, -- '' for none
    looked_at BIGINT NOT NULL
);

-- Leases of jobs: the process that runs the job, the end of its lease, and when the job is due
-- again. holder is a random number of the process.
CREATE TABLE job_leases (
    name        TEXT   NOT NULL PRIMARY KEY,
    holder      BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    due_at      BIGINT NOT NULL
);

-- The account at the certificate authority, the certificate that it issued, and their keys, by
-- the names that certmagic gives them. content is encrypted.
CREATE TABLE certificate_files (
    name    TEXT  NOT NULL COLLATE "C" PRIMARY KEY, -- sorts by byte
    content BYTEA NOT NULL
);

-- The zone of managed records, one row at most: its name, a hash of what the configuration says about
-- it, the serial of its latest change, and the version of policies.
CREATE TABLE zone (
    name          TEXT   NOT NULL PRIMARY KEY,
    configuration TEXT   NOT NULL,
    serial        BIGINT NOT NULL,
    policies      BIGINT NOT NULL DEFAULT 0
);

-- The names below the zone, and what they answer: content is in the format of ops_zonecontent.go. A
-- label is random, belongs to one record of one domain, and is never used again: what has no source and
-- does not expire is a tombstone, which has nothing of a team. source is what content is made of. serial
-- is that of the zone at the latest change. expires_at is when a name that is no longer in use becomes a
-- tombstone, 0 for one in use.
CREATE TABLE zone_names (
    label      TEXT   NOT NULL PRIMARY KEY,
    kind       TEXT   NOT NULL,
    content    TEXT   NOT NULL,
    source     TEXT   NOT NULL,
    serial     BIGINT NOT NULL,
    expires_at BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX zone_names_by_serial ON zone_names (serial);
CREATE INDEX zone_names_expiring ON zone_names (expires_at) WHERE expires_at > 0;

-- The hosts mta-sts.domain of managed MTA-STS records, and what they serve. A row outlives its record and
-- its team until expires_at, 0 for one in use. label is that of zone_names. policy_id names the policy,
-- and published_id the one in the TXT record. version numbers the changes that replicas have to know of.
-- verified is 1 if the CNAME record leads to the label. not_after and renew_at are those of the
-- certificate, 0 without one.
CREATE TABLE policy_hosts (
    label        TEXT   NOT NULL PRIMARY KEY,
    team         BIGINT NOT NULL,
    domain       TEXT   NOT NULL,
    policy       TEXT   NOT NULL,
    policy_id    TEXT   NOT NULL,
    published_id TEXT   NOT NULL,
    version      BIGINT NOT NULL,
    verified     BIGINT NOT NULL,
    not_after    BIGINT NOT NULL,
    renew_at     BIGINT NOT NULL,
    failures     BIGINT NOT NULL,
    problem      TEXT   NOT NULL,
    expires_at   BIGINT NOT NULL,
    due_at       BIGINT NOT NULL
);

CREATE INDEX policy_hosts_by_version ON policy_hosts (version);
CREATE INDEX policy_hosts_by_domain ON policy_hosts (domain);
CREATE INDEX policy_hosts_due ON policy_hosts (team, due_at);

-- The processes that serve policies: which version, and until when they may. holder is a random number
-- of the process.
CREATE TABLE policy_replicas (
    holder      BIGINT NOT NULL PRIMARY KEY,
    version     BIGINT NOT NULL,
    lease_until BIGINT NOT NULL
);

-- The orders of certificates of a week, and until when those for an organizational domain have to wait,
-- or all for ''.
CREATE TABLE certificate_orders (
    organization TEXT   NOT NULL,
    ordered_at   BIGINT NOT NULL
);

CREATE INDEX certificate_orders_by_time ON certificate_orders (ordered_at, organization);

CREATE TABLE certificate_pauses (
    organization TEXT   NOT NULL PRIMARY KEY,
    until        BIGINT NOT NULL
);

-- Acknowledged mail whose reports are not stored yet, if the spool is in the database. holder
-- is a random number of the process that handles it. crashes is the number of processes that
-- died while they handled it, including the current one if it dies. charged names the teams
-- and the client network whose space it uses.
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

-- Mail is usually compressed already and removed soon: compressing it again costs more time
-- than it saves.
ALTER TABLE spool_chunks ALTER COLUMN content SET STORAGE EXTERNAL;

-- The processes that handle mail in the spool. Each extends its lease every few seconds.
CREATE TABLE spool_holders (
    holder      BIGINT NOT NULL PRIMARY KEY,
    lease_until BIGINT NOT NULL
);

-- ---------------------------------------------------------------- Tenant tables

-- The lock of a team: transactions that receive reports share it, and those that add domains,
-- which claim earlier reports, hold it exclusively. It is not the row in teams, which a
-- sharded database has on every server.
CREATE TABLE team_locks (
    team_id BIGINT PRIMARY KEY REFERENCES teams (id)
);

-- A deleted domain is a hidden row until its data is purged. compliant and non_compliant are
-- the sums of its days. tags are in order, each with a space before and after it: ' eu shop '.
-- sample marks a domain with sample data, whose DNS is not queried. A domain that is added
-- while many shares wait for it claims them in several steps: claiming is set until none is
-- left. forwarding_accepted is the number of affected forwarded messages in 30 days that a
-- user accepted; 0 for none.
CREATE TABLE domains (
    id                  BIGINT  NOT NULL,
    team_id             BIGINT  NOT NULL REFERENCES teams (id),
    name                TEXT    NOT NULL COLLATE "C",
    active              BOOLEAN NOT NULL DEFAULT FALSE,
    record              TEXT    NOT NULL DEFAULT '',
    record_domain       TEXT    NOT NULL DEFAULT '', -- the domain that publishes it
    policy              TEXT    NOT NULL DEFAULT '',
    purpose             TEXT    NOT NULL DEFAULT '',
    report_mailbox      TEXT    NOT NULL, -- as in addresses
    compliant           BIGINT  NOT NULL DEFAULT 0,
    non_compliant       BIGINT  NOT NULL DEFAULT 0,
    created_at          BIGINT  NOT NULL,
    updated_at          BIGINT  NOT NULL,
    grade               TEXT    NOT NULL DEFAULT '',
    checked_at          BIGINT  NOT NULL DEFAULT 0, -- the last check, conclusive or not
    known_at            BIGINT  NOT NULL DEFAULT 0, -- the last conclusive check
    known_until         BIGINT  NOT NULL DEFAULT 0, -- caches may have its answers until then
    failures            INTEGER NOT NULL DEFAULT 0, -- inconclusive checks since then
    reason              TEXT    NOT NULL DEFAULT '', -- of the last inconclusive check
    doubted             TEXT    NOT NULL DEFAULT '', -- a change that was seen once and has to be confirmed
    full_at             BIGINT  NOT NULL DEFAULT 0, -- the last full check
    next_full_at        BIGINT  NOT NULL,
    next_check_at       BIGINT  NOT NULL, -- of DMARC alone, or full
    unfinished          INTEGER NOT NULL DEFAULT 0, -- checks that started since the last one that ended
    deleted_at          BIGINT  NOT NULL DEFAULT 0,
    tags                TEXT    NOT NULL DEFAULT '',
    parked              BOOLEAN NOT NULL DEFAULT FALSE, -- set by a user
    sample              BOOLEAN NOT NULL DEFAULT FALSE,
    claiming            BOOLEAN NOT NULL DEFAULT FALSE,
    forwarding_accepted BIGINT  NOT NULL DEFAULT 0,
    stage               TEXT    NOT NULL DEFAULT '', -- of its posture, '' for none yet
    next_step           TEXT    NOT NULL DEFAULT '', -- act or nothing, '' for none yet
    proof               TEXT    NOT NULL DEFAULT '', -- missing, challenge or rua; '' if none is required
    challenge           TEXT    NOT NULL DEFAULT '', -- random, for this row alone
    spf_due_at          BIGINT  NOT NULL DEFAULT 0, -- when the managed SPF record is resolved again, 0 for none
    spf_problem         TEXT    NOT NULL DEFAULT '', -- why what it answers is not that of now
    PRIMARY KEY (team_id, id)
);

CREATE UNIQUE INDEX domains_by_name ON domains (team_id, name) WHERE deleted_at = 0;
-- The schedule finds the teams with due domains, then claims those of one team.
CREATE INDEX domains_due ON domains (next_check_at, team_id) WHERE deleted_at = 0;
CREATE INDEX domains_due_of_team ON domains (team_id, next_check_at) WHERE deleted_at = 0;
CREATE INDEX domains_spf_due ON domains (spf_due_at, team_id) WHERE spf_due_at > 0 AND deleted_at = 0;
CREATE INDEX domains_deleted ON domains (team_id, deleted_at) WHERE deleted_at > 0;
CREATE INDEX domains_claiming ON domains (team_id) WHERE claiming;
-- The list of domains counts them by policy, grade, stage and next step, and the tags.
CREATE INDEX domains_by_posture ON domains (team_id, policy, grade, stage, next_step, (known_at = 0)) WHERE deleted_at = 0;
CREATE INDEX domains_tagged ON domains (team_id) WHERE deleted_at = 0 AND tags <> '';

-- The history of full checks: one row for consecutive checks with the same result. first_at is
-- the start of the first of them, last_at of the latest. document is what was found, changes
-- the difference from the previous row, errors the findings of that level, one per line. parts
-- has a bit for each part of the DNS that changed, in the order of facts.Parts.
CREATE TABLE checks (
    id        BIGINT NOT NULL,
    team_id   BIGINT NOT NULL,
    domain_id BIGINT NOT NULL,
    first_at  BIGINT NOT NULL,
    last_at   BIGINT NOT NULL,
    grade     TEXT   NOT NULL,
    document  TEXT   NOT NULL,
    changes   TEXT   NOT NULL,
    parts     BIGINT NOT NULL DEFAULT 0,
    errors    TEXT   NOT NULL,
    PRIMARY KEY (team_id, id),
    FOREIGN KEY (team_id, domain_id) REFERENCES domains (team_id, id)
);

CREATE INDEX checks_of_domain ON checks (team_id, domain_id, first_at, id);
CREATE INDEX checks_with_changes ON checks (team_id, first_at, id) WHERE parts <> 0;

-- The number of the newest event of a team. The row stays locked from the time when a number
-- is taken until the commit, so that events become visible in the order of their numbers.
CREATE TABLE event_counters (
    team_id BIGINT PRIMARY KEY REFERENCES teams (id),
    seq     BIGINT NOT NULL
);

-- domain_id is null for events that do not concern a domain.
CREATE TABLE events (
    team_id   BIGINT NOT NULL,
    seq       BIGINT NOT NULL,
    id        BIGINT NOT NULL,
    domain_id BIGINT,
    at        BIGINT NOT NULL,
    kind      TEXT   NOT NULL,
    document  TEXT   NOT NULL,
    PRIMARY KEY (team_id, seq),
    FOREIGN KEY (team_id, domain_id) REFERENCES domains (team_id, id)
);

CREATE INDEX events_of_domain ON events (team_id, domain_id, seq);
CREATE INDEX events_by_time ON events (team_id, at, seq);

-- The endpoints that events are delivered to. With the format of a chat service, secret is the
-- sealed URL, and url ends after the host. kinds and domains have one entry per line, '' for
-- all. Secrets are sealed with a key that is not in the database; old_secret also signs until
-- old_until. failing_since is the first failure after the last success; claimed_at is written
-- only to lock the row. notify_at is the time from which the owners have to be notified that
-- the webhook was disabled, 0 if they need not be.
CREATE TABLE webhooks (
    team_id         BIGINT NOT NULL REFERENCES teams (id),
    id              BIGINT NOT NULL,
    url             TEXT   NOT NULL,
    format          TEXT   NOT NULL DEFAULT 'standard',
    kinds           TEXT   NOT NULL,
    domains         TEXT   NOT NULL,
    secret          BYTEA  NOT NULL,
    old_secret      BYTEA  NOT NULL,
    old_until       BIGINT NOT NULL DEFAULT 0,
    created_at      BIGINT NOT NULL,
    disabled_at     BIGINT NOT NULL DEFAULT 0,
    disabled_reason TEXT   NOT NULL DEFAULT '',
    failing_since   BIGINT NOT NULL DEFAULT 0,
    claimed_at      BIGINT NOT NULL DEFAULT 0,
    notify_at       BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, id)
);

CREATE INDEX webhooks_to_notify ON webhooks (notify_at) WHERE notify_at > 0;

-- The outbox and the log of deliveries: a row for each event and each webhook that subscribes
-- to it, written with the event. state is 'pending', 'delivered' or 'not_sent'. A worker claims
-- a row by moving next_at and lease_until ahead.
CREATE TABLE deliveries (
    team_id      BIGINT  NOT NULL,
    id           BIGINT  NOT NULL,
    webhook_id   BIGINT  NOT NULL,
    seq          BIGINT  NOT NULL, -- of the event
    state        TEXT    NOT NULL DEFAULT 'pending',
    created_at   BIGINT  NOT NULL,
    next_at      BIGINT  NOT NULL,
    give_up_at   BIGINT  NOT NULL,
    lease_until  BIGINT  NOT NULL,
    attempts     INTEGER NOT NULL,
    test         BOOLEAN NOT NULL, -- requested by a user; attempted once
    attempted_at BIGINT  NOT NULL DEFAULT 0,
    status       INTEGER NOT NULL DEFAULT 0, -- of the last response
    took_ms      BIGINT  NOT NULL DEFAULT 0,
    problem      TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (team_id, id),
    FOREIGN KEY (team_id, webhook_id) REFERENCES webhooks (team_id, id),
    FOREIGN KEY (team_id, seq) REFERENCES events (team_id, seq)
);

CREATE INDEX deliveries_of_webhook ON deliveries (team_id, webhook_id, seq);
CREATE INDEX deliveries_of_event ON deliveries (team_id, seq);
CREATE INDEX deliveries_by_age ON deliveries (team_id, created_at);
CREATE INDEX deliveries_due ON deliveries (next_at, team_id) WHERE state = 'pending';
CREATE INDEX deliveries_due_of_team ON deliveries (team_id, next_at) WHERE state = 'pending';

-- The progress of alert detection. A pass scans a few domains at a time, in order of id after
-- after_id: those whose mail changed since changed_at or, with is_full, all. began_at is the
-- start of the pass, full_at the start of the last full pass that ended.
CREATE TABLE alert_scans (
    team_id    BIGINT PRIMARY KEY REFERENCES teams (id),
    due_at     BIGINT  NOT NULL,
    began_at   BIGINT  NOT NULL,
    after_id   BIGINT  NOT NULL,
    changed_at BIGINT  NOT NULL,
    is_full    BOOLEAN NOT NULL,
    full_at    BIGINT  NOT NULL
);

-- The alert rules of a team; without a row the defaults apply.
CREATE TABLE alert_rules (
    team_id  BIGINT PRIMARY KEY REFERENCES teams (id),
    document TEXT   NOT NULL
);

-- The decision of the rules on each event: state is 'passed', 'suppressed', 'waiting' for others
-- of its group, or 'grouped' with them; reason is why. delivered_at is when the first channel
-- accepted it: deliveries are removed earlier. domain_id is 0 for none. first_day and last_day
-- are the days of a detected incident, null for other events; with them an incident is detected
-- once. open is true until someone acknowledges an alert that needs it, or until it is resolved.
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
    delivered_at    BIGINT NOT NULL DEFAULT 0,
    acknowledged_at BIGINT NOT NULL DEFAULT 0,
    acknowledged_by TEXT   NOT NULL DEFAULT '',
    open            BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (team_id, seq),
    FOREIGN KEY (team_id, seq) REFERENCES events (team_id, seq)
);

CREATE UNIQUE INDEX alerts_once ON alerts (team_id, domain_id, kind, subject, first_day);
CREATE INDEX alerts_of_kind ON alerts (team_id, kind, send_at);
CREATE INDEX alerts_waiting ON alerts (send_at, team_id) WHERE state = 'waiting';
CREATE INDEX alerts_open ON alerts (team_id, domain_id, kind, seq) WHERE open;

-- Messages by day: of a domain here, and of all present domains of a team in team_days, which
-- has the sums. quarantined and rejected are the dispositions of receivers (the rest was
-- delivered); dkim and spf are the messages that passed and are aligned; unverified are
-- messages in reports whose sender is not verified.
CREATE TABLE domain_days (
    team_id       BIGINT  NOT NULL,
    domain_id     BIGINT  NOT NULL,
    day           INTEGER NOT NULL,
    compliant     BIGINT  NOT NULL,
    non_compliant BIGINT  NOT NULL,
    quarantined   BIGINT  NOT NULL,
    rejected      BIGINT  NOT NULL,
    dkim          BIGINT  NOT NULL,
    spf           BIGINT  NOT NULL,
    unverified    BIGINT  NOT NULL,
    PRIMARY KEY (team_id, domain_id, day),
    FOREIGN KEY (team_id, domain_id) REFERENCES domains (team_id, id)
);

CREATE INDEX domain_days_by_age ON domain_days (team_id, day);

-- The versions of a day's records, and what was built from them.
--   changes        bumped by each change of the records that count
--   broken         the last change that removed records, or added older ones than newest_report
--   in_rollup      the change that the rollup has, -1 without a rollup
--   rollup_at      when the rollup was built
--   build          identifies the blocks of the rollup among those of other builds
--   newest_report  the highest id of a report in the rollup
--   in_senders     the change that senders has, -1 for none
--   senders_due    the senders have to be found again although no record changed
--   removed        the last change that removed records that should not have counted
--   expired        records expired, so that the remaining ones do not have all senders of the day
CREATE TABLE team_days (
    team_id       BIGINT  NOT NULL REFERENCES teams (id),
    day           INTEGER NOT NULL,
    compliant     BIGINT  NOT NULL,
    non_compliant BIGINT  NOT NULL,
    quarantined   BIGINT  NOT NULL,
    rejected      BIGINT  NOT NULL,
    dkim          BIGINT  NOT NULL,
    spf           BIGINT  NOT NULL,
    unverified    BIGINT  NOT NULL,
    changes       BIGINT  NOT NULL DEFAULT 0,
    broken        BIGINT  NOT NULL DEFAULT 0,
    in_rollup     BIGINT  NOT NULL DEFAULT -1,
    rollup_at     BIGINT  NOT NULL DEFAULT 0,
    build         BIGINT  NOT NULL DEFAULT 0,
    newest_report BIGINT  NOT NULL DEFAULT 0,
    in_senders    BIGINT  NOT NULL DEFAULT -1,
    senders_due   BOOLEAN NOT NULL DEFAULT FALSE,
    removed       BIGINT  NOT NULL DEFAULT 0,
    expired       BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (team_id, day)
);

-- The days whose rollup is stale. A day with fewer messages needs no rollup, unless an old one
-- has to be removed.
CREATE INDEX team_days_not_in_rollup ON team_days (team_id, day)
    WHERE (compliant + non_compliant >= 2000 OR in_rollup >= 0) AND in_rollup < changes;
CREATE INDEX team_days_not_in_senders ON team_days (team_id, day) WHERE in_senders <> changes OR senders_due;

-- The first and the last day on which mail of a sender was reported, over all time: for a
-- domain, and with domain_id 0 for all present domains of a team. key is the sender's key in
-- package insight. The row outlives the records.
CREATE TABLE senders (
    team_id   BIGINT  NOT NULL REFERENCES teams (id),
    domain_id BIGINT  NOT NULL,
    key       TEXT    NOT NULL,
    first_day INTEGER NOT NULL,
    last_day  INTEGER NOT NULL,
    PRIMARY KEY (team_id, domain_id, key)
);

-- The mail of a domain on a day: the figures from which alerts are detected, written with the
-- senders of the day and stored for some weeks. changed_at is the time of the last change of
-- document.
CREATE TABLE mail_days (
    team_id    BIGINT  NOT NULL REFERENCES teams (id),
    domain_id  BIGINT  NOT NULL,
    day        INTEGER NOT NULL,
    changed_at BIGINT  NOT NULL,
    document   TEXT    NOT NULL,
    PRIMARY KEY (team_id, domain_id, day)
);

CREATE INDEX mail_days_by_day ON mail_days (team_id, day);
CREATE INDEX mail_days_changed ON mail_days (team_id, changed_at);

-- A rollup has all records of a team's day that count, as far as insight needs them, in
-- blocks: a few rows are read instead of tens of thousands. It is derived from the records.
-- See package rollup.
CREATE TABLE day_rollups (
    team_id BIGINT  NOT NULL REFERENCES teams (id),
    day     INTEGER NOT NULL,
    build   BIGINT  NOT NULL,
    n       INTEGER NOT NULL,
    records BIGINT  NOT NULL,
    block   BYTEA   NOT NULL,
    PRIMARY KEY (team_id, day, build, n)
);

-- They are compressed already.
ALTER TABLE day_rollups ALTER COLUMN block SET STORAGE EXTERNAL;

-- The usage of a team: what it stored and removed on each day. The sums of stored and
-- unreadable over all days are what it has, in bytes. reports counts the received reports.
CREATE TABLE team_usage (
    team_id    BIGINT  NOT NULL REFERENCES teams (id),
    day        INTEGER NOT NULL,
    stored     BIGINT  NOT NULL,
    unreadable BIGINT  NOT NULL,
    reports    BIGINT  NOT NULL,
    PRIMARY KEY (team_id, day)
);

-- Deliveries as they were received, compressed, by their SHA-256. packed is the first chunk;
-- the others are in original_chunks, from n = 1 on, under the key chunks. That key is not the
-- hash: the chunks are written before the original, possibly by two processes at once.
CREATE TABLE originals (
    team_id   BIGINT NOT NULL REFERENCES teams (id),
    hash      BYTEA  NOT NULL,
    size      BIGINT NOT NULL, -- as it was sent
    packed    BYTEA  NOT NULL,
    stored_at BIGINT NOT NULL,
    chunks    BYTEA  NOT NULL, -- empty for none
    bytes     BIGINT NOT NULL, -- compressed, with its chunks
    PRIMARY KEY (team_id, hash)
);

CREATE INDEX originals_by_age ON originals (team_id, stored_at);

CREATE TABLE original_chunks (
    team_id BIGINT  NOT NULL REFERENCES teams (id),
    hash    BYTEA   NOT NULL, -- originals.chunks
    n       INTEGER NOT NULL,
    packed  BYTEA   NOT NULL,
    PRIMARY KEY (team_id, hash, n)
);

-- Chunks that no original refers to: those of a delivery that is being received, which the
-- purge leaves alone until pending_until, and those to be removed.
CREATE TABLE unused_chunks (
    team_id       BIGINT NOT NULL REFERENCES teams (id),
    chunks        BYTEA  NOT NULL,
    pending_until BIGINT NOT NULL,
    PRIMARY KEY (team_id, chunks)
);

CREATE INDEX unused_chunks_by_end ON unused_chunks (pending_until, team_id);

-- A row for each version of a report. state is 'counted'; 'excluded' by an editor; 'replaced'
-- by another version; 'held', with the reason, until an editor releases it; or 'deleted',
-- which hides the report until its rows are purged. At most one version of each identity is
-- counted or excluded: the current one. A large report is received in several transactions:
-- until the last of them it also has the state 'deleted', and the purge leaves it alone until
-- pending_until.
CREATE TABLE reports (
    id            BIGINT  NOT NULL, -- increases with time: the order of lists
    team_id       BIGINT  NOT NULL REFERENCES teams (id),
    kind          TEXT    NOT NULL,
    identity      BYTEA   NOT NULL, -- identifies the report among all reporters
    content       BYTEA   NOT NULL, -- the hash of its content
    state         TEXT    NOT NULL DEFAULT 'counted',
    held_reason   TEXT    NOT NULL DEFAULT '',
    organization  TEXT    NOT NULL,
    external_id   TEXT    NOT NULL,
    domain        TEXT    NOT NULL,
    begin_at      BIGINT  NOT NULL,
    end_at        BIGINT  NOT NULL,
    records       BIGINT  NOT NULL,
    messages      BIGINT  NOT NULL,
    compliant     BIGINT  NOT NULL,
    quirks        TEXT    NOT NULL, -- a line each
    damage        TEXT    NOT NULL,
    intake        TEXT    NOT NULL,
    genuine       TEXT    NOT NULL,
    authentication TEXT   NOT NULL, -- a line each: From, DKIM, SPF, DMARC, reason, authenticated domain, its organizational domain
    standing      INTEGER NOT NULL DEFAULT 0, -- from 0 (unverified) to 3 (authenticated as the reporter)
    received_at   BIGINT  NOT NULL,
    original      BYTEA   NOT NULL,
    member        TEXT    NOT NULL,
    document      TEXT    NOT NULL,
    emptied_at    BIGINT  NOT NULL DEFAULT 0, -- when its records expired; -1 while they are removed
    pending_until BIGINT  NOT NULL DEFAULT 0,
    cold          BIGINT  NOT NULL DEFAULT 0, -- the id of the cold_blocks with its records; 0 if they are in records
    text_bytes    BIGINT  NOT NULL DEFAULT 0, -- length of long texts in its records, for the quota of stored bytes
    PRIMARY KEY (team_id, id)
);

CREATE UNIQUE INDEX reports_of_content ON reports (team_id, identity, content) WHERE state <> 'deleted';
CREATE UNIQUE INDEX reports_current ON reports (team_id, identity) WHERE state = 'counted' OR state = 'excluded';
CREATE INDEX reports_of_team ON reports (team_id, id, begin_at);
CREATE INDEX reports_held ON reports (team_id, id) WHERE state = 'held';
CREATE INDEX reports_deleted ON reports (team_id, id) WHERE state = 'deleted';
CREATE INDEX reports_by_age ON reports (team_id, end_at) WHERE emptied_at <= 0;
CREATE INDEX reports_without_records ON reports (team_id, begin_at) WHERE emptied_at > 0;
CREATE INDEX reports_of_original ON reports (team_id, original);
CREATE INDEX reports_of_external_id ON reports (team_id, external_id, id);
CREATE INDEX reports_of_cold ON reports (team_id, cold) WHERE cold > 0;
-- Failure reports have a retention of their own.
CREATE INDEX failure_reports_by_age ON reports (team_id, received_at) WHERE kind = 'failure';

-- A share: the records of a report about one From domain, with their counts, their day, and
-- the domain that claims them, 0 for none yet. The paths are the labels of the From domain and
-- of the policy domain from the root down, so that all shares that wait for a new domain, or
-- for names below it, are one range.
CREATE TABLE shares (
    team_id       BIGINT  NOT NULL,
    report_id     BIGINT  NOT NULL,
    n             INTEGER NOT NULL,
    domain_id     BIGINT  NOT NULL,
    kind          TEXT    NOT NULL,
    day           INTEGER NOT NULL,
    header_from   TEXT    NOT NULL,
    from_path     TEXT    NOT NULL COLLATE "C",
    policy_path   TEXT    NOT NULL COLLATE "C",
    records       BIGINT  NOT NULL,
    compliant     BIGINT  NOT NULL,
    non_compliant BIGINT  NOT NULL,
    quarantined   BIGINT  NOT NULL,
    rejected      BIGINT  NOT NULL,
    dkim          BIGINT  NOT NULL,
    spf           BIGINT  NOT NULL,
    unverified    BIGINT  NOT NULL,
    PRIMARY KEY (team_id, report_id, n),
    FOREIGN KEY (team_id, report_id) REFERENCES reports (team_id, id)
);

CREATE INDEX shares_of_domain ON shares (team_id, domain_id, day);
CREATE INDEX shares_tls ON shares (team_id, domain_id, day) WHERE kind = 'tls';
CREATE INDEX shares_unclaimed_from ON shares (team_id, from_path) WHERE domain_id = 0;
CREATE INDEX shares_unclaimed_policy ON shares (team_id, policy_path) WHERE domain_id = 0;

-- The rows of aggregate reports. They have no references, which would be checked for each
-- of millions. details is shown and never searched. The table is partitioned by ranges of
-- report_id, which begins with the time of receipt. A job makes partitions of a week ahead of
-- time and drops old ones; rows without a partition go into records_rest.
CREATE TABLE records (
    team_id     BIGINT  NOT NULL,
    report_id   BIGINT  NOT NULL,
    share       INTEGER NOT NULL,
    n           INTEGER NOT NULL,
    count       BIGINT  NOT NULL,
    source      TEXT    NOT NULL,
    disposition TEXT    NOT NULL,
    dkim        TEXT    NOT NULL,
    spf         TEXT    NOT NULL,
    details     TEXT    NOT NULL,
    PRIMARY KEY (team_id, report_id, share, n)
) PARTITION BY RANGE (report_id);

-- The first partition ends with the next week.
-- +goose StatementBegin
DO $$
DECLARE
    week CONSTANT BIGINT := 604800 * 1000000::BIGINT << 11; -- of microseconds, before 11 random bits
BEGIN
    EXECUTE format('CREATE TABLE records_first PARTITION OF records FOR VALUES FROM (MINVALUE) TO (%s)',
        ((extract(epoch FROM now())::BIGINT * 1000000 << 11) / week + 2) * week);
END $$;
-- +goose StatementEnd

CREATE TABLE records_rest PARTITION OF records DEFAULT;

-- Old records, stored by column: blocks in the format of package cold. id identifies a group
-- of reports whose records were stored together, in order of (report, share, n); the columns
-- name the first report and the last record of each block. checksum is the SHA-256 of the block.
-- rows_left is set if the table records may still have the rows. The group is rewritten or
-- removed at rewrite_at; 0 is never. A group that is being written has it too, in case its
-- writer dies.
CREATE TABLE cold_blocks (
    team_id      BIGINT  NOT NULL REFERENCES teams (id),
    id           BIGINT  NOT NULL,
    n            INTEGER NOT NULL,
    first_report BIGINT  NOT NULL,
    last_report  BIGINT  NOT NULL,
    last_share   INTEGER NOT NULL,
    last_n       INTEGER NOT NULL,
    records      BIGINT  NOT NULL,
    bytes        BIGINT  NOT NULL,
    checksum     BYTEA   NOT NULL,
    block        BYTEA   NOT NULL,
    rows_left    BOOLEAN NOT NULL,
    rewrite_at   BIGINT  NOT NULL,
    PRIMARY KEY (team_id, id, n)
);

-- They are compressed already.
ALTER TABLE cold_blocks ALTER COLUMN block SET STORAGE EXTERNAL;

CREATE INDEX cold_blocks_by_report ON cold_blocks (team_id, last_report) WHERE rewrite_at = 0;
CREATE INDEX cold_blocks_to_rewrite ON cold_blocks (rewrite_at, team_id) WHERE rewrite_at > 0;

-- The DKIM selectors in the reported signatures of a domain's mail.
CREATE TABLE selectors (
    team_id   BIGINT  NOT NULL REFERENCES teams (id),
    domain_id BIGINT  NOT NULL,
    signer    TEXT    NOT NULL, -- the domain that signs
    selector  TEXT    NOT NULL,
    day       INTEGER NOT NULL, -- the last
    PRIMARY KEY (team_id, domain_id, signer, selector)
);

-- The classes that a team gave to senders of a domain: yours, unknown or spoofing.
CREATE TABLE sender_classes (
    team_id   BIGINT NOT NULL REFERENCES teams (id),
    domain_id BIGINT NOT NULL,
    sender    TEXT   NOT NULL, -- its key
    class     TEXT   NOT NULL,
    PRIMARY KEY (team_id, domain_id, sender)
);

-- The versions of managed records, of which the last is published. kind is dmarc or tls_rpt, label
-- that of zone_names, the same for all versions of a record.
CREATE TABLE record_versions (
    team_id    BIGINT NOT NULL REFERENCES teams (id),
    domain_id  BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    version    BIGINT NOT NULL,
    label      TEXT   NOT NULL,
    content    TEXT   NOT NULL,
    author     TEXT   NOT NULL,
    reason     TEXT   NOT NULL,
    approver   TEXT   NOT NULL,
    effect     TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, domain_id, kind, version)
);

-- Versions of managed records that are published once another user approves them, one for each record.
-- user_id is who proposed it, or created the token that did, 0 for the command line.
CREATE TABLE record_proposals (
    team_id    BIGINT NOT NULL REFERENCES teams (id),
    domain_id  BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    version    BIGINT NOT NULL,
    content    TEXT   NOT NULL,
    author     TEXT   NOT NULL,
    reason     TEXT   NOT NULL,
    effect     TEXT   NOT NULL,
    user_id    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, domain_id, kind)
);

-- The DNS servers to which the records of domains are published, and versions that are on their way
-- there: their rows are removed when it is known what became of them.
CREATE TABLE record_targets (
    team_id    BIGINT NOT NULL REFERENCES teams (id),
    domain_id  BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    server     TEXT   NOT NULL,
    zone       TEXT   NOT NULL,
    secret     BYTEA  NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, domain_id)
);
CREATE TABLE record_attempts (
    team_id    BIGINT NOT NULL REFERENCES teams (id),
    domain_id  BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    id         BIGINT NOT NULL,
    version    TEXT   NOT NULL, -- JSON
    created_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, domain_id, kind)
);
CREATE INDEX record_attempts_begun ON record_attempts (created_at);

-- What the advice for a domain comes to, for lists of domains. It is as old as computed_at: the
-- refresh job and each page that computes the advice replace it.
CREATE TABLE postures (
    team_id       BIGINT NOT NULL REFERENCES teams (id),
    domain_id     BIGINT NOT NULL,
    stage         TEXT   NOT NULL,
    action        TEXT   NOT NULL, -- the next one, '' for none
    title         TEXT   NOT NULL, -- of the action
    messages      BIGINT NOT NULL, -- of 30 days
    yours         BIGINT NOT NULL, -- of them, from the team's own senders and services
    yours_passing BIGINT NOT NULL,
    basis         BYTEA  NOT NULL, -- a hash of what the advice was computed from
    computed_at   BIGINT NOT NULL,
    PRIMARY KEY (team_id, domain_id)
);

-- Senders that a team added, and corrections of known ones. They are recognized by networks,
-- hosts and domains, one per line.
CREATE TABLE team_senders (
    team_id  BIGINT NOT NULL REFERENCES teams (id),
    key      TEXT   NOT NULL COLLATE "C",
    name     TEXT   NOT NULL,
    class    TEXT   NOT NULL, -- for all domains; '' if reports decide
    networks TEXT   NOT NULL,
    hosts    TEXT   NOT NULL,
    domains  TEXT   NOT NULL,
    PRIMARY KEY (team_id, key)
);

-- Rejected items: received content that could not be read. The bytes are in originals.
CREATE TABLE rejected (
    id          BIGINT NOT NULL, -- increases with time
    team_id     BIGINT NOT NULL REFERENCES teams (id),
    domain_id   BIGINT NOT NULL, -- whose reporting address it was sent to, 0 for none
    kind        TEXT   NOT NULL, -- what it seems to be
    intake      TEXT   NOT NULL,
    name        TEXT   NOT NULL,
    member      TEXT   NOT NULL,
    reason      TEXT   NOT NULL,
    genuine     TEXT   NOT NULL,
    authentication TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    original    BYTEA  NOT NULL,
    bytes       BIGINT NOT NULL, -- charged for it; an original is charged once
    PRIMARY KEY (team_id, id)
);

CREATE UNIQUE INDEX rejected_once ON rejected (team_id, original, member);
CREATE INDEX rejected_by_age ON rejected (team_id, received_at);
CREATE INDEX rejected_of_domain ON rejected (team_id, domain_id) WHERE domain_id <> 0;

-- Until autovacuum analyzes a table, the planner guesses, and assumes that most rows are
-- hidden: it would read all domains of a team to find one by its id. The tables therefore
-- start with the statistics of a made-up installation, which survive TRUNCATE. The shards of
-- an empty database that is distributed get them too. If there is a team, nothing changes.
-- +goose StatementBegin
CREATE FUNCTION analyze_made_up() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM teams) THEN
        RETURN FALSE;
    END IF;
    INSERT INTO teams (id, name, api, created_at) SELECT t, 'team ' || t, FALSE, 0 FROM generate_series(1, 120) AS t;
    INSERT INTO domains (id, team_id, name, report_mailbox, created_at, updated_at, next_full_at, next_check_at)
        SELECT 10 * t + n, t, 'd' || n, '', 0, 0, t, t FROM generate_series(1, 120) AS t, generate_series(1, 3) AS n;
    INSERT INTO domain_days (team_id, domain_id, day, compliant, non_compliant, quarantined, rejected, dkim, spf, unverified)
        SELECT team_id, id, n, 1, 1, 1, 1, 1, 1, 1 FROM domains, generate_series(1, 3) AS n;
    INSERT INTO reports (id, team_id, kind, identity, content, organization, external_id, domain, begin_at, end_at, records, messages, compliant,
            quirks, damage, intake, genuine, authentication, received_at, original, member, document)
        SELECT id, team_id, 'aggregate', CAST(CAST(id AS TEXT) AS BYTEA), CAST(CAST(id AS TEXT) AS BYTEA), '', '', '', id, id, 1, 1, 1,
            '', '', '', '', '', id, CAST(CAST(id AS TEXT) AS BYTEA), '', '' FROM domains;
    INSERT INTO shares SELECT team_id, id, n, id, 'aggregate', n, '', 'com.d' || id, '', 1, 1, 1, 1, 1, 1, 1, 1 FROM domains, generate_series(0, 1) AS n;
    INSERT INTO records SELECT team_id, report_id, n, 0, 1, '', '', '', '', '' FROM shares;
    ANALYZE domains, domain_days, reports, shares, records;
    TRUNCATE teams, records CASCADE;
    RETURN TRUE;
END $$;
-- +goose StatementEnd
SELECT analyze_made_up();
