-- +goose Up

-- The form in which events are delivered. Where it is that of a chat service, secret is the
-- sealed URL, and url ends after the host.
ALTER TABLE webhooks ADD COLUMN format TEXT NOT NULL DEFAULT 'standard';
