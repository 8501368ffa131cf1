-- +goose Up

-- crashes counts how often reading the mailbox panicked since it was added or
-- resumed. A mailbox with paused_at > 0 is not read; error says why.
ALTER TABLE mailboxes ADD COLUMN crashes   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mailboxes ADD COLUMN paused_at BIGINT  NOT NULL DEFAULT 0;
