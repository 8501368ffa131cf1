package config

import (
	"slices"
	"time"
)

// reportSettings returns the settings for receiving and storing reports.
func reportSettings() []Setting {
	return slices.Concat(quotaSettings(), limitSettings(), intakeSettings(), mailIntakeSettings(), retentionSettings(), fileSettings())
}

// quotaSettings returns the default quotas of teams.
func quotaSettings() []Setting {
	amount, storage := wholeBetween(0, 1<<50, " (no limit)"), bytesBetween(0, 1<<50, " (no limit)")
	return []Setting{
		define("quota.domains", wholeKind(), "10000", amount,
			func(c *Config) *int { return &c.Quota.Domains },
			"maximum number of domains of a team without its own quota; 0 = no limit"),
		define("quota.stored", bytesKind(), "10GiB", storage,
			func(c *Config) *int { return &c.Quota.Stored },
			"maximum storage of a team; 0 = no limit"),
		define("quota.unreadable", bytesKind(), "256MiB", storage,
			func(c *Config) *int { return &c.Quota.Unreadable },
			"maximum storage of a team for rejected content; 0 = no limit"),
		define("quota.reports", wholeKind(), "20000", amount,
			func(c *Config) *int { return &c.Quota.Reports },
			"maximum number of reports a team may receive per day; 0 = no limit"),
		define("quota.mailboxes", wholeKind(), "20", amount,
			func(c *Config) *int { return &c.Quota.Mailboxes },
			"maximum number of mailboxes of a team; 0 = no limit"),
	}
}

func limitSettings() []Setting {
	const most = 2 << 30
	bytes := bytesBetween(1<<10, most, "")
	return []Setting{
		define("limit.upload", bytesKind(), "32MiB", bytes,
			func(c *Config) *int { return &c.Limit.Upload },
			"maximum size of an uploaded or imported file"),
		define("limit.mail", bytesKind(), "32MiB", bytes,
			func(c *Config) *int { return &c.Limit.Mail },
			"maximum size of an email message with reports"),
		define("limit.expanded", bytesKind(), "256MiB", bytes,
			func(c *Config) *int { return &c.Limit.Expanded },
			"maximum total size of all decompressed archives in a message"),
		define("limit.ratio", wholeKind(), "200", wholeBetween(1, 1_000_000, ""),
			func(c *Config) *int { return &c.Limit.Ratio },
			"maximum compression ratio"),
		define("limit.ratio_from", bytesKind(), "1MiB", bytesBetween(0, most, ""),
			func(c *Config) *int { return &c.Limit.RatioFrom },
			"decompressed size from which limit.ratio applies"),
		define("limit.members", wholeKind(), "1000", wholeBetween(1, 1_000_000, ""),
			func(c *Config) *int { return &c.Limit.Members },
			"maximum number of archive files, MIME parts and messages in a message"),
		define("limit.nesting", wholeKind(), "5", wholeBetween(1, 100, ""),
			func(c *Config) *int { return &c.Limit.Nesting },
			"maximum nesting depth of archives and messages around a report"),
		define("limit.records", wholeKind(), "1000000", wholeBetween(1, 100_000_000, ""),
			func(c *Config) *int { return &c.Limit.Records },
			"maximum number of records in a report"),
		define("limit.free_disk", bytesKind(), "256MiB", bytesBetween(0, 1<<50, ""),
			func(c *Config) *int { return &c.Limit.FreeDisk },
			"minimum free disk space in the data folder; below it, no reports are accepted"),
		define("limit.time", durationKind(), "1m", durationFrom(time.Second, time.Hour),
			func(c *Config) *time.Duration { return &c.Limit.Time },
			"maximum CPU time to parse one message"),
		define("limit.read_memory", bytesKind(), "256MiB", bytesBetween(16<<20, most, ""),
			func(c *Config) *int { return &c.Limit.ReadMemory },
			"memory shared by all large API responses; a team may use half"),
		define("limit.memory", bytesKind(), "0", rule[int]{
			want:  "0, or a size from 64MiB, in bytes or with MiB or GiB",
			valid: func(v int) bool { return v == 0 || v >= 64<<20 },
		},
			func(c *Config) *int { return &c.Limit.Memory },
			"soft memory limit, unless GOMEMLIMIT is set; 0 = 90 % of the cgroup's, or 384 MiB"),
	}
}

func intakeSettings() []Setting {
	return []Setting{
		define("intake.forged", wordKind(), ForgedMark, oneOf(ForgedMark, ForgedReject),
			func(c *Config) *string { return &c.Intake.Forged },
			"whether reports in messages with a spoofed sender are marked (mark) or rejected (refuse)"),
		define("intake.failure_addresses", wordKind(), AddressesRedact, oneOf(AddressesRedact, AddressesKeep),
			func(c *Config) *string { return &c.Intake.FailureAddresses },
			"whether local parts of addresses in failure reports are redacted or kept"),
		define("intake.failure_body", wordKind(), BodyDrop, oneOf(BodyDrop, BodyKeep),
			func(c *Config) *string { return &c.Intake.FailureBody },
			"whether message bodies in failure reports are dropped or kept"),
		define("intake.folder", textKind(), "", orEmpty(folder()),
			func(c *Config) *string { return &c.Intake.Folder },
			"folder whose files are imported as reports, then moved to its subfolder done or rejected").
			defaulting("empty = off"),
		define("intake.folder_team", textKind(), "default", teamName(),
			func(c *Config) *string { return &c.Intake.FolderTeam },
			"team that receives the reports in intake.folder"),
		define("intake.folder_interval", durationKind(), "5s", durationFrom(time.Second, 24*time.Hour),
			func(c *Config) *time.Duration { return &c.Intake.FolderInterval },
			"how often to scan intake.folder"),
	}
}

// mailIntakeSettings returns the sections smtp and imap.
func mailIntakeSettings() []Setting {
	connections := wholeBetween(1, 100_000, "")
	return []Setting{
		define("smtp.hostname", nameKind(), "", orEmpty(domainName()),
			func(c *Config) *string { return &c.SMTP.Hostname },
			"host name of the SMTP server").
			defaulting("report_domain"),
		define("smtp.certificate", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.SMTP.Certificate },
			"PEM file with the certificate chain for STARTTLS; requires smtp.key").
			defaulting("empty = no STARTTLS").
			needing(rule[Config]{
				want:  "set together with smtp.key (DMARCD_SMTP_KEY), the private key file of the certificate",
				valid: func(c Config) bool { return c.SMTP.Certificate == "" || c.SMTP.Key != "" },
			}),
		define("smtp.key", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.SMTP.Key },
			"PEM file with the private key of smtp.certificate").
			defaulting("empty").
			needing(rule[Config]{
				want:  "set together with smtp.certificate (DMARCD_SMTP_CERTIFICATE), the certificate file of the key",
				valid: func(c Config) bool { return c.SMTP.Key == "" || c.SMTP.Certificate != "" },
			}),
		define("smtp.max_connections", wholeKind(), "200", connections,
			func(c *Config) *int { return &c.SMTP.MaxConnections },
			"maximum number of SMTP connections"),
		define("smtp.max_per_address", wholeKind(), "20", connections,
			func(c *Config) *int { return &c.SMTP.MaxPerAddress },
			"maximum number of SMTP connections per address; twice that per network (/24 or /48)"),
		// RFC 5321 §4.5.3.1.8 requires at least 100.
		define("smtp.max_recipients", wholeKind(), "100", wholeBetween(1, 10_000, ""),
			func(c *Config) *int { return &c.SMTP.MaxRecipients },
			"maximum number of recipients of a message"),
		define("smtp.rate", numberKind(), "600", numberUpTo(1_000_000, "off"),
			func(c *Config) *float64 { return &c.SMTP.Rate },
			"maximum messages per minute and reporting address, at most half from one network; 0 = unlimited"),
		// RFC 5321 §4.5.3.2.7 requires at least 5 minutes.
		define("smtp.timeout", durationKind(), "5m", durationFrom(time.Second, time.Hour),
			func(c *Config) *time.Duration { return &c.SMTP.Timeout },
			"timeout for commands of SMTP clients"),
		define("imap.interval", durationKind(), "5m", durationFrom(time.Second, 24*time.Hour),
			func(c *Config) *time.Duration { return &c.IMAP.Interval },
			"how often to poll a mailbox whose server does not support push (IDLE)"),
	}
}

func retentionSettings() []Setting {
	age := ageFrom(time.Hour, 876_000*time.Hour) // a hundred years
	return []Setting{
		define("retention.originals", durationKind(), "2160h", age,
			func(c *Config) *time.Duration { return &c.Retention.Originals },
			"how long to keep the original messages and files; 0s = forever"),
		define("retention.records", durationKind(), "17520h", age,
			func(c *Config) *time.Duration { return &c.Retention.Records },
			"how long to keep reports with their records; 0s = forever"),
		define("retention.counters", durationKind(), "0s", age,
			func(c *Config) *time.Duration { return &c.Retention.Counters },
			"how long to keep daily counters; 0s = forever").
			needing(rule[Config]{
				want: "a duration of at least retention.records, since counters summarize records",
				valid: func(c Config) bool {
					r := c.Retention
					return r.Counters == 0 || r.Records != 0 && r.Records <= r.Counters
				},
			}),
		define("retention.rejected", durationKind(), "2160h", age,
			func(c *Config) *time.Duration { return &c.Retention.Rejected },
			"how long to keep rejected reports; 0s = forever"),
		define("retention.failure", durationKind(), "336h", age,
			func(c *Config) *time.Duration { return &c.Retention.Failure },
			"how long to keep failure reports with their originals; 0s = forever"),
		define("retention.audit", durationKind(), "17520h", age,
			func(c *Config) *time.Duration { return &c.Retention.Audit },
			"how long to keep the audit log; 0s = forever"),
		define("retention.entries", wholeKind(), "1000000", rule[int]{
			want:  "0, or a whole number from 1000",
			valid: func(v int) bool { return v == 0 || v >= 1000 },
		},
			func(c *Config) *int { return &c.Retention.Entries },
			"how many entries of the audit log, events and deliveries to keep, each per team; 0 = unlimited"),
		define("cold.after", durationKind(), "720h", orZero(durationFrom(7*24*time.Hour, 876_000*time.Hour), "never"),
			func(c *Config) *time.Duration { return &c.Cold.After },
			"age from which on records are stored by column, which takes a tenth of the space; 0s = never"),
	}
}

// fileSettings returns the sections secret and senders.
func fileSettings() []Setting {
	return []Setting{
		define("secret.file", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Secret.File },
			"file with the key that encrypts mailbox passwords and webhook secrets; created on first use").
			defaulting("secret.key in the data folder"),
		define("senders.networks", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Senders.Networks },
			"MMDB file that maps addresses to networks").
			defaulting("networks.mmdb in the data folder or next to the program"),
		define("senders.countries", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Senders.Countries },
			"MMDB file that maps addresses to countries").
			defaulting("countries.mmdb in the data folder or next to the program"),
		define("senders.catalogue", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Senders.Catalogue },
			"TOML file with services, forwarders and mailing lists that take precedence over the built-in ones").
			defaulting("empty = built-in only"),
	}
}
