-- +goose Up

SET LOCAL statement_timeout = 0;

-- records is partitioned by ranges of report ids, which begin with the time of receipt. What
-- is there becomes the first partition, up to the end of next week. A job makes partitions of
-- a week ahead of time and drops old ones; rows without a partition go into records_rest.
ALTER TABLE records RENAME TO records_first;
ALTER INDEX records_pkey RENAME TO records_first_pkey;

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

-- +goose StatementBegin
DO $$
DECLARE
    week   CONSTANT BIGINT := 604800 * 1000000::BIGINT << 11; -- of microseconds, before 11 random bits
    newest BIGINT := GREATEST(extract(epoch FROM now())::BIGINT * 1000000 << 11, (SELECT MAX(report_id) FROM records_first));
BEGIN
    EXECUTE format('ALTER TABLE records ATTACH PARTITION records_first FOR VALUES FROM (MINVALUE) TO (%s)', (newest / week + 2) * week);
END $$;
-- +goose StatementEnd

CREATE TABLE records_rest PARTITION OF records DEFAULT;
