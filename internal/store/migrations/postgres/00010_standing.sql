-- +goose Up

-- A migration may take longer than any other statement of ours should.
SET LOCAL statement_timeout = 0;

-- standing is how far the report is known to come from its reporter, from 0 (unverified)
-- to 3 (authenticated as the reporter); see dmarcd.Standing. The verdict has a further
-- line: the domain that the mail was authenticated as.
ALTER TABLE reports ADD COLUMN standing INTEGER NOT NULL DEFAULT 0;
UPDATE reports SET standing = 1 WHERE genuine = 'yes';

DROP INDEX reports_deleted;
CREATE INDEX reports_deleted ON reports (team_id, id) WHERE state = 'deleted';

-- Messages from unverified reports.
ALTER TABLE shares ADD COLUMN unverified BIGINT NOT NULL DEFAULT 0;
ALTER TABLE domain_days ADD COLUMN unverified BIGINT NOT NULL DEFAULT 0;
ALTER TABLE team_days ADD COLUMN unverified BIGINT NOT NULL DEFAULT 0;

UPDATE shares SET unverified = compliant + non_compliant
    WHERE report_id IN (SELECT id FROM reports WHERE genuine <> 'yes');
UPDATE domain_days SET unverified = (SELECT COALESCE(SUM(shares.unverified), 0)
    FROM shares JOIN reports ON reports.id = shares.report_id AND reports.state = 'counted'
    WHERE shares.team_id = domain_days.team_id AND shares.domain_id = domain_days.domain_id AND shares.day = domain_days.day);
UPDATE team_days SET unverified = (SELECT COALESCE(SUM(domain_days.unverified), 0)
    FROM domain_days JOIN domains ON domains.id = domain_days.domain_id AND domains.deleted_at = 0
    WHERE domain_days.team_id = team_days.team_id AND domain_days.day = team_days.day);
