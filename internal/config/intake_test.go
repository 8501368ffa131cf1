package config_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/config"
)

// intakeTexts contains a value other than the default for every setting in the sections
// that withIntake sets.
var intakeTexts = [][2]string{
	{"quota.domains", "1000"},
	{"quota.stored", "2000"},
	{"quota.unreadable", "300"},
	{"quota.reports", "40"},
	{"quota.mailboxes", "5"},
	{"limit.upload", "1048576"},
	{"limit.mail", "2097152"},
	{"limit.expanded", "4194304"},
	{"limit.ratio", "50"},
	{"limit.ratio_from", "0"},
	{"limit.members", "10"},
	{"limit.nesting", "3"},
	{"limit.records", "5000"},
	{"limit.free_disk", "1024"},
	{"limit.time", "10s"},
	{"limit.read_memory", "32 MiB"},
	{"limit.memory", "134217728"},
	{"intake.forged", "refuse"},
	{"intake.failure_addresses", "keep"},
	{"intake.failure_body", "keep"},
	{"intake.folder", "/srv/drop"},
	{"intake.folder_team", "Mail operations"},
	{"intake.folder_interval", "30s"},
	{"smtp.hostname", "mx.example.com"},
	{"smtp.certificate", "/etc/dmarcd/mx.pem"},
	{"smtp.key", "/etc/dmarcd/mx.key"},
	{"smtp.max_connections", "50"},
	{"smtp.max_per_address", "5"},
	{"smtp.max_recipients", "10"},
	{"smtp.rate", "0.5"},
	{"smtp.timeout", "1m"},
	{"imap.interval", "15m"},
	{"retention.originals", "720h"},
	{"retention.records", "8760h"},
	{"retention.counters", "87600h"},
	{"retention.rejected", "0s"},
	{"retention.failure", "24h"},
	{"retention.audit", "8760h"},
	{"retention.entries", "50000"},
	{"cold.after", "336h"},
	{"secret.file", "/etc/dmarcd/seal.key"},
	{"senders.networks", "/etc/dmarcd/networks.mmdb"},
	{"senders.countries", "/etc/dmarcd/countries.mmdb"},
	{"senders.catalogue", "/etc/dmarcd/senders.toml"},
	{"oidc.issuer", "https://login.example.com/tenant"},
	{"oidc.client_id", "dmarcd"},
	{"oidc.client_secret", "open sesame"},
	{"oidc.name", "Example Login"},
	{"oidc.domains", "example.com,example.org"},
	{"mail.relay", "smtps://user:secret@mail.example.com:465"},
	{"mail.from", "dmarcd <dmarc@example.com>"},
	{"mail.dkim_key", "/etc/dmarcd/dkim.pem"},
	{"mail.dkim_selector", "s1"},
	{"mx.probe", "off"},
}

// withIntake returns c with the values of intakeTexts.
func withIntake(c config.Config) config.Config {
	c.Mail = config.Mail{
		Relay: "smtps://user:secret@mail.example.com:465", From: "dmarcd <dmarc@example.com>", DKIMKey: "/etc/dmarcd/dkim.pem", DKIMSelector: "s1",
	}
	c.Quota = config.Quota{Domains: 1000, Stored: 2000, Unreadable: 300, Reports: 40, Mailboxes: 5}
	c.Limit = config.Limit{
		Upload: 1 << 20, Mail: 2 << 20, Expanded: 4 << 20, Ratio: 50,
		Members: 10, Nesting: 3, Records: 5000, FreeDisk: 1024, Time: 10 * time.Second, ReadMemory: 33554432, Memory: 134217728,
	}
	c.Intake = config.Intake{
		Forged: config.ForgedReject, FailureAddresses: config.AddressesKeep, FailureBody: config.BodyKeep,
		Folder: "/srv/drop", FolderTeam: "Mail operations", FolderInterval: 30 * time.Second,
	}
	c.SMTP = config.SMTP{
		Hostname: "mx.example.com", Certificate: "/etc/dmarcd/mx.pem", Key: "/etc/dmarcd/mx.key",
		MaxConnections: 50, MaxPerAddress: 5, MaxRecipients: 10, Rate: 0.5, Timeout: time.Minute,
	}
	c.MX = config.MX{Probe: config.ProbeOff}
	c.IMAP = config.IMAP{Interval: 15 * time.Minute}
	c.Retention = config.Retention{Originals: 720 * time.Hour, Records: 8760 * time.Hour, Counters: 87600 * time.Hour, Failure: 24 * time.Hour, Audit: 8760 * time.Hour, Entries: 50_000}
	c.Cold = config.Cold{After: 336 * time.Hour}
	c.Secret = config.Secret{File: "/etc/dmarcd/seal.key"}
	c.Senders = config.Senders{Networks: "/etc/dmarcd/networks.mmdb", Countries: "/etc/dmarcd/countries.mmdb", Catalogue: "/etc/dmarcd/senders.toml"}
	c.OIDC = config.OIDC{
		Issuer: "https://login.example.com/tenant", ClientID: "dmarcd", ClientSecret: "open sesame",
		Name: "Example Login", Domains: []string{"example.com", "example.org"},
	}
	return c
}

// intakeLines formats each key and value of intakeTexts as a line.
func intakeLines(format string) string {
	var b strings.Builder
	for _, text := range intakeTexts {
		fmt.Fprintf(&b, format+"\n", text[0], text[1])
	}
	return b.String()
}

func intakeEnviron() []string {
	var environ []string
	for _, text := range intakeTexts {
		environ = append(environ, "DMARCD_"+strings.ToUpper(strings.ReplaceAll(text[0], ".", "_"))+"="+text[1])
	}
	return environ
}

// intakeFlags adds intakeTexts to flags and returns them.
func intakeFlags(flags map[string]string) map[string]string {
	for _, text := range intakeTexts {
		flags[strings.NewReplacer(".", "-", "_", "-").Replace(text[0])] = text[1]
	}
	return flags
}

func TestIntakeDefaultsFollow(t *testing.T) {
	t.Parallel()
	c := load(t, config.Input{Flags: map[string]string{"data": "/srv/dmarcd", "report-domain": "reports.example.com"}}).Config
	if want := filepath.Join("/srv/dmarcd", "secret.key"); c.Secret.File != want {
		t.Errorf("got secret file %q, want %q", c.Secret.File, want)
	}
	if want := "reports.example.com"; c.SMTP.Hostname != want {
		t.Errorf("got SMTP host name %q, want %q", c.SMTP.Hostname, want)
	}
}

func TestBadIntakeValues(t *testing.T) {
	t.Parallel()
	const age = "must be a duration from 1h to 876000h, or 0s (forever)"
	for _, tt := range []struct {
		name  string
		flags map[string]string
		want  string // the whole line
	}{
		{
			"an upload of nothing",
			map[string]string{"limit-upload": "0"},
			`limit.upload = "0" (flag --limit-upload): must be a size from 1KiB to 2GiB, in bytes or with KiB, MiB or GiB`,
		},
		{
			"no nesting",
			map[string]string{"limit-nesting": "0"},
			`limit.nesting = "0" (flag --limit-nesting): must be a whole number from 1 to 100`,
		},
		{
			"no time",
			map[string]string{"limit-time": "0s"},
			`limit.time = "0s" (flag --limit-time): must be a duration from 1s to 1h`,
		},
		{
			"an unknown word for forged reports",
			map[string]string{"intake-forged": "drop"},
			`intake.forged = "drop" (flag --intake-forged): must be one of mark, refuse`,
		},
		{
			"an invalid team name",
			map[string]string{"intake-folder-team": "a\tb"},
			`intake.folder_team = "a\tb" (flag --intake-folder-team): must be the name of a team, 1 to 100 printable characters`,
		},
		{
			"a certificate without its key",
			map[string]string{"smtp-certificate": "a.pem"},
			`smtp.certificate = "a.pem" (flag --smtp-certificate): must be set together with smtp.key (DMARCD_SMTP_KEY), ` +
				`the private key file of the certificate`,
		},
		{
			"a key without its certificate",
			map[string]string{"smtp-key": "a.key"},
			`smtp.key = "a.key" (flag --smtp-key): must be set together with smtp.certificate (DMARCD_SMTP_CERTIFICATE), ` +
				`the certificate file of the key`,
		},
		{
			"an invalid host name",
			map[string]string{"smtp-hostname": "mx"},
			`smtp.hostname = "mx" (flag --smtp-hostname): must be a domain name, such as reports.example.com`,
		},
		{
			"kept for a minute",
			map[string]string{"retention-originals": "1m"},
			`retention.originals = "1m" (flag --retention-originals): ` + age,
		},
		{
			"cold after an hour",
			map[string]string{"cold-after": "1h"},
			`cold.after = "1h" (flag --cold-after): must be a duration from 168h to 876000h, or 0s (never)`,
		},
		{
			"counters that go before the records",
			map[string]string{"retention-counters": "24h"},
			`retention.counters = "24h" (flag --retention-counters): ` +
				`must be a duration of at least retention.records, since counters summarize records`,
		},
		{
			"counters that go before records that stay",
			map[string]string{"retention-counters": "876000h", "retention-records": "0s"},
			`retention.counters = "876000h" (flag --retention-counters): ` +
				`must be a duration of at least retention.records, since counters summarize records`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(config.Input{Flags: tt.flags})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}
