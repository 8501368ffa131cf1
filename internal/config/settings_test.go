package config_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/config"
)

// TestNames pins the names that installations depend on.
func TestNames(t *testing.T) {
	t.Parallel()
	want := []string{
		"database DMARCD_DATABASE --database",
		"database_read DMARCD_DATABASE_READ --database-read",
		"blobs DMARCD_BLOBS --blobs",
		"data DMARCD_DATA --data",
		"listen DMARCD_LISTEN --listen",
		"base_url DMARCD_BASE_URL --base-url",
		"trusted_proxies DMARCD_TRUSTED_PROXIES --trusted-proxies",
		"dns DMARCD_DNS --dns",
		"smtp_listen DMARCD_SMTP_LISTEN --smtp-listen",
		"spool DMARCD_SPOOL --spool",
		"report_domain DMARCD_REPORT_DOMAIN --report-domain",
		"token DMARCD_TOKEN --token",
		"rate_limit DMARCD_RATE_LIMIT --rate-limit",
		"log.level DMARCD_LOG_LEVEL --log-level",
		"log.format DMARCD_LOG_FORMAT --log-format",
		"log.slow_query DMARCD_LOG_SLOW_QUERY --log-slow-query",
		"http.cors_origins DMARCD_HTTP_CORS_ORIGINS --http-cors-origins",
		"http.read_timeout DMARCD_HTTP_READ_TIMEOUT --http-read-timeout",
		"http.write_timeout DMARCD_HTTP_WRITE_TIMEOUT --http-write-timeout",
		"http.idle_timeout DMARCD_HTTP_IDLE_TIMEOUT --http-idle-timeout",
		"http.max_header_bytes DMARCD_HTTP_MAX_HEADER_BYTES --http-max-header-bytes",
		"http.max_connections DMARCD_HTTP_MAX_CONNECTIONS --http-max-connections",
		"http.max_per_address DMARCD_HTTP_MAX_PER_ADDRESS --http-max-per-address",
		"resolver.timeout DMARCD_RESOLVER_TIMEOUT --resolver-timeout",
		"outbound.allow DMARCD_OUTBOUND_ALLOW --outbound-allow",
		"mx.probe DMARCD_MX_PROBE --mx-probe",
		"schedule.interval DMARCD_SCHEDULE_INTERVAL --schedule-interval",
		"schedule.full_interval DMARCD_SCHEDULE_FULL_INTERVAL --schedule-full-interval",
		"schedule.rate DMARCD_SCHEDULE_RATE --schedule-rate",
		"quota.domains DMARCD_QUOTA_DOMAINS --quota-domains",
		"quota.stored DMARCD_QUOTA_STORED --quota-stored",
		"quota.unreadable DMARCD_QUOTA_UNREADABLE --quota-unreadable",
		"quota.reports DMARCD_QUOTA_REPORTS --quota-reports",
		"quota.mailboxes DMARCD_QUOTA_MAILBOXES --quota-mailboxes",
		"limit.upload DMARCD_LIMIT_UPLOAD --limit-upload",
		"limit.mail DMARCD_LIMIT_MAIL --limit-mail",
		"limit.expanded DMARCD_LIMIT_EXPANDED --limit-expanded",
		"limit.ratio DMARCD_LIMIT_RATIO --limit-ratio",
		"limit.ratio_from DMARCD_LIMIT_RATIO_FROM --limit-ratio-from",
		"limit.members DMARCD_LIMIT_MEMBERS --limit-members",
		"limit.nesting DMARCD_LIMIT_NESTING --limit-nesting",
		"limit.records DMARCD_LIMIT_RECORDS --limit-records",
		"limit.free_disk DMARCD_LIMIT_FREE_DISK --limit-free-disk",
		"limit.time DMARCD_LIMIT_TIME --limit-time",
		"limit.read_memory DMARCD_LIMIT_READ_MEMORY --limit-read-memory",
		"limit.memory DMARCD_LIMIT_MEMORY --limit-memory",
		"intake.forged DMARCD_INTAKE_FORGED --intake-forged",
		"intake.failure_addresses DMARCD_INTAKE_FAILURE_ADDRESSES --intake-failure-addresses",
		"intake.failure_body DMARCD_INTAKE_FAILURE_BODY --intake-failure-body",
		"intake.folder DMARCD_INTAKE_FOLDER --intake-folder",
		"intake.folder_team DMARCD_INTAKE_FOLDER_TEAM --intake-folder-team",
		"intake.folder_interval DMARCD_INTAKE_FOLDER_INTERVAL --intake-folder-interval",
		"smtp.hostname DMARCD_SMTP_HOSTNAME --smtp-hostname",
		"smtp.certificate DMARCD_SMTP_CERTIFICATE --smtp-certificate",
		"smtp.key DMARCD_SMTP_KEY --smtp-key",
		"smtp.max_connections DMARCD_SMTP_MAX_CONNECTIONS --smtp-max-connections",
		"smtp.max_per_address DMARCD_SMTP_MAX_PER_ADDRESS --smtp-max-per-address",
		"smtp.max_recipients DMARCD_SMTP_MAX_RECIPIENTS --smtp-max-recipients",
		"smtp.rate DMARCD_SMTP_RATE --smtp-rate",
		"smtp.timeout DMARCD_SMTP_TIMEOUT --smtp-timeout",
		"imap.interval DMARCD_IMAP_INTERVAL --imap-interval",
		"retention.originals DMARCD_RETENTION_ORIGINALS --retention-originals",
		"retention.records DMARCD_RETENTION_RECORDS --retention-records",
		"retention.counters DMARCD_RETENTION_COUNTERS --retention-counters",
		"retention.rejected DMARCD_RETENTION_REJECTED --retention-rejected",
		"retention.failure DMARCD_RETENTION_FAILURE --retention-failure",
		"cold.after DMARCD_COLD_AFTER --cold-after",
		"secret.file DMARCD_SECRET_FILE --secret-file",
		"senders.networks DMARCD_SENDERS_NETWORKS --senders-networks",
		"senders.countries DMARCD_SENDERS_COUNTRIES --senders-countries",
		"senders.catalogue DMARCD_SENDERS_CATALOGUE --senders-catalogue",
		"oidc.issuer DMARCD_OIDC_ISSUER --oidc-issuer",
		"oidc.client_id DMARCD_OIDC_CLIENT_ID --oidc-client-id",
		"oidc.client_secret DMARCD_OIDC_CLIENT_SECRET --oidc-client-secret",
		"oidc.name DMARCD_OIDC_NAME --oidc-name",
		"oidc.domains DMARCD_OIDC_DOMAINS --oidc-domains",
		"mail.relay DMARCD_MAIL_RELAY --mail-relay",
		"mail.from DMARCD_MAIL_FROM --mail-from",
		"mail.dkim_key DMARCD_MAIL_DKIM_KEY --mail-dkim-key",
		"mail.dkim_selector DMARCD_MAIL_DKIM_SELECTOR --mail-dkim-selector",
	}
	var got []string
	for _, s := range config.Settings() {
		got = append(got, s.Key+" "+s.Env()+" --"+s.Flag())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestEverySettingIsExplained(t *testing.T) {
	t.Parallel()
	oneLine := regexp.MustCompile(`^[^\n|]{8,120}$`)
	kinds := []string{"text", "list", "duration", "number", "size", "word"}
	var envs []string
	for _, s := range config.Settings() {
		if !oneLine.MatchString(s.Help) || strings.HasSuffix(s.Help, ".") {
			t.Errorf("%s: got help %q, want one short line without a full stop", s.Key, s.Help)
		}
		if s.Default == "" {
			t.Errorf("%s: got no default, want a value or a description", s.Key)
		}
		if !slices.Contains(kinds, s.Kind) {
			t.Errorf("%s: got kind %q, want one of %v", s.Key, s.Kind, kinds)
		}
		if (s.Kind == "word") != (len(s.Words) > 1) {
			t.Errorf("%s: got the words %q, want some only for the kind word", s.Key, s.Words)
		}
		// http.max and http_max would have the same variable.
		if slices.Contains(envs, s.Env()) {
			t.Errorf("%s: got variable %s twice, want one each", s.Key, s.Env())
		}
		envs = append(envs, s.Env())
	}
}

func TestSettingsBelongToTheCaller(t *testing.T) {
	t.Parallel()
	config.Settings()[0].Key = "changed"
	if got := config.Settings()[0].Key; got != "database" {
		t.Errorf("got %q, want %q", got, "database")
	}
}

func TestUnknownEnvironment(t *testing.T) {
	t.Parallel()
	got := config.UnknownEnvironment([]string{
		"HOME=/root",
		"DMARCD_LISTEN=:80",
		"DMARCD_TEST_POSTGRES=postgres://localhost/x",
		"DMARCD_CORPUS=corpus",
		"DMARCD_TOKENS=dmd_x",
		"DMARCD_DNS_TIMEOUT=2s",
		"DMARCD_LISEN=:81",
		"DMARCD_COLOUR=blue",
		"DMARCD_X=1",
		"DMARCD_=",
		"dmarcd_listen=:82",
		"DMARCDX=1",
	})
	want := []config.UnknownName{
		{Name: "DMARCD_"},
		{Name: "DMARCD_COLOUR"},
		{Name: "DMARCD_DNS_TIMEOUT"},
		{Name: "DMARCD_LISEN", Nearest: "DMARCD_LISTEN"},
		{Name: "DMARCD_TOKENS", Nearest: "DMARCD_TOKEN"},
		{Name: "DMARCD_X"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unknown variables (-want +got):\n%s", diff)
	}
	if got := config.UnknownEnvironment([]string{"DMARCD_DATA=x"}); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
}
