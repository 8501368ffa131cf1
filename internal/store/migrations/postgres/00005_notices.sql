-- +goose Up

-- When the owners are to be notified that the webhook was disabled; 0 for never. A worker
-- claims it by moving the time ahead.
ALTER TABLE webhooks ADD COLUMN notify_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX webhooks_to_notify ON webhooks (notify_at) WHERE notify_at > 0;
