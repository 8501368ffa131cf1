package config

import (
	"math"
	"slices"
	"time"
)

// intakeSettings are those of the ways in which reports come in, and of how long they
// stay.
func intakeSettings() []Setting {
	return slices.Concat(quotaSettings(), limitSettings(), folderSettings(), smtpSettings(), keepSettings())
}

// quotaSettings are what a team may have that has no quota of its own.
func quotaSettings() []Setting {
	amount := wholeBetween(0, 1<<50, " (no limit)")
	return []Setting{
		define("quota.domains", wholeKind(), "10000", amount,
			func(c *Config) *int { return &c.Quota.Domains },
			"how many domains a team may have that has no quota of its own; 0 = no limit"),
		define("quota.stored", wholeKind(), "10737418240", amount,
			func(c *Config) *int { return &c.Quota.Stored },
			"how many bytes a team may store; 0 = no limit"),
		define("quota.unreadable", wholeKind(), "268435456", amount,
			func(c *Config) *int { return &c.Quota.Unreadable },
			"how many bytes a team may store of what could not be read; 0 = no limit"),
		define("quota.reports", wholeKind(), "20000", amount,
			func(c *Config) *int { return &c.Quota.Reports },
			"how many reports a team may receive in a day; 0 = no limit"),
		define("quota.mailboxes", wholeKind(), "20", amount,
			func(c *Config) *int { return &c.Quota.Mailboxes },
			"how many mailboxes a team may have read; 0 = no limit"),
	}
}

func limitSettings() []Setting {
	bytes := wholeBetween(1<<10, math.MaxInt32, "")
	return []Setting{
		define("limit.upload", wholeKind(), "33554432", bytes,
			func(c *Config) *int { return &c.Limit.Upload },
			"how many bytes an uploaded or imported file with reports may have"),
		define("limit.mail", wholeKind(), "33554432", bytes,
			func(c *Config) *int { return &c.Limit.Mail },
			"how many bytes a mail with reports may have"),
		define("limit.expanded", wholeKind(), "268435456", bytes,
			func(c *Config) *int { return &c.Limit.Expanded },
			"how many bytes all archives in one message together may expand to"),
		define("limit.ratio", wholeKind(), "200", wholeBetween(1, 1_000_000, ""),
			func(c *Config) *int { return &c.Limit.Ratio },
			"how many times its size something compressed may expand to"),
		define("limit.ratio_from", wholeKind(), "1048576", wholeBetween(0, math.MaxInt32, ""),
			func(c *Config) *int { return &c.Limit.RatioFrom },
			"from how many expanded bytes on limit.ratio is looked at"),
		define("limit.members", wholeKind(), "1000", wholeBetween(1, 1_000_000, ""),
			func(c *Config) *int { return &c.Limit.Members },
			"how many files of archives, parts of mails and mails may be in one message"),
		define("limit.nesting", wholeKind(), "5", wholeBetween(1, 100, ""),
			func(c *Config) *int { return &c.Limit.Nesting },
			"how many archives and mails may be around a report"),
		define("limit.records", wholeKind(), "1000000", wholeBetween(1, 100_000_000, ""),
			func(c *Config) *int { return &c.Limit.Records },
			"how many records a report may have"),
		define("limit.free_disk", wholeKind(), "268435456", wholeBetween(0, 1<<50, ""),
			func(c *Config) *int { return &c.Limit.FreeDisk },
			"how many bytes the disk of the data folder must have free; below that nothing is received"),
		define("limit.time", durationKind(), "1m", durationFrom(time.Second, time.Hour),
			func(c *Config) *time.Duration { return &c.Limit.Time },
			"how long the reading of one message may compute (time of the processor)"),
		define("limit.read_memory", wholeKind(), "268435456", wholeBetween(16<<20, math.MaxInt32, ""),
			func(c *Config) *int { return &c.Limit.ReadMemory },
			"how many bytes the answers to all large requests may hold together; a team gets half"),
		define("limit.memory", wholeKind(), "0", rule[int]{
			want:  "0, or a whole number from 67108864",
			valid: func(v int) bool { return v == 0 || v >= 64<<20 },
		},
			func(c *Config) *int { return &c.Limit.Memory },
			"soft memory limit in bytes, unless GOMEMLIMIT is set; 0 = 90 % of the cgroup's, or 384 MiB"),
	}
}

func folderSettings() []Setting {
	return []Setting{
		define("intake.forged", wordKind(), ForgedMark, oneOf(ForgedMark, ForgedRefuse),
			func(c *Config) *string { return &c.Intake.Forged },
			"whether reports in mails that are not from whom they say are marked or refused and kept aside"),
		define("intake.failure_addresses", wordKind(), AddressesRedact, oneOf(AddressesRedact, AddressesKeep),
			func(c *Config) *string { return &c.Intake.FailureAddresses },
			"whether the local parts of addresses in failure reports are kept"),
		define("intake.failure_body", wordKind(), BodyDrop, oneOf(BodyDrop, BodyKeep),
			func(c *Config) *string { return &c.Intake.FailureBody },
			"whether the bodies of the mails in failure reports are kept"),
		define("intake.folder", textKind(), "", orEmpty(path()),
			func(c *Config) *string { return &c.Intake.Folder },
			"a folder whose files are read as reports, then moved to done or refused below it").
			defaulting("empty = off"),
		define("intake.folder_team", textKind(), "default", teamName(),
			func(c *Config) *string { return &c.Intake.FolderTeam },
			"the name of the team that the reports in intake.folder are for"),
		define("intake.folder_interval", durationKind(), "5s", durationFrom(time.Second, 24*time.Hour),
			func(c *Config) *time.Duration { return &c.Intake.FolderInterval },
			"how often intake.folder is looked at"),
	}
}

func smtpSettings() []Setting {
	connections := wholeBetween(1, 100_000, "")
	return []Setting{
		define("smtp.hostname", nameKind(), "", orEmpty(domainName()),
			func(c *Config) *string { return &c.SMTP.Hostname },
			"how the SMTP server calls itself").
			defaulting("report_domain"),
		define("smtp.certificate", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.SMTP.Certificate },
			"a PEM file with the certificates for STARTTLS; needs smtp.key").
			defaulting("empty = no STARTTLS").
			needing(rule[Config]{
				want:  "smtp.key (DMARCD_SMTP_KEY) as well, the file with the key of the certificate",
				valid: func(c Config) bool { return c.SMTP.Certificate == "" || c.SMTP.Key != "" },
			}),
		define("smtp.key", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.SMTP.Key },
			"a PEM file with the key of smtp.certificate").
			defaulting("empty").
			needing(rule[Config]{
				want:  "smtp.certificate (DMARCD_SMTP_CERTIFICATE) as well, the file with the certificate of the key",
				valid: func(c Config) bool { return c.SMTP.Key == "" || c.SMTP.Certificate != "" },
			}),
		define("smtp.max_connections", wholeKind(), "200", connections,
			func(c *Config) *int { return &c.SMTP.MaxConnections },
			"how many SMTP clients may be connected at once"),
		define("smtp.max_per_address", wholeKind(), "20", connections,
			func(c *Config) *int { return &c.SMTP.MaxPerAddress },
			"how many SMTP clients may be connected from one address; twice as many from one network (/24 or /48)"),
		// RFC 5321 §4.5.3.1.8 wants room for at least 100.
		define("smtp.max_recipients", wholeKind(), "100", wholeBetween(1, 10_000, ""),
			func(c *Config) *int { return &c.SMTP.MaxRecipients },
			"how many recipients a mail may have"),
		define("smtp.rate", numberKind(), "600", numberUpTo(1_000_000, "off"),
			func(c *Config) *float64 { return &c.SMTP.Rate },
			"how many mails a minute a reporting address takes, at most half from one network; 0 = off"),
		// RFC 5321 §4.5.3.2.7 wants a server to wait for at least 5 minutes.
		define("smtp.timeout", durationKind(), "5m", durationFrom(time.Second, time.Hour),
			func(c *Config) *time.Duration { return &c.SMTP.Timeout },
			"how long an SMTP client is waited for"),
		define("imap.interval", durationKind(), "5m", durationFrom(time.Second, 24*time.Hour),
			func(c *Config) *time.Duration { return &c.IMAP.Interval },
			"how often a mailbox is looked at whose server does not tell of new mail"),
	}
}

func keepSettings() []Setting {
	age := ageFrom(time.Hour, 876_000*time.Hour) // a hundred years
	return []Setting{
		define("retention.originals", durationKind(), "2160h", age,
			func(c *Config) *time.Duration { return &c.Retention.Originals },
			"how long what was sent is kept byte for byte; 0s = for ever"),
		define("retention.records", durationKind(), "17520h", age,
			func(c *Config) *time.Duration { return &c.Retention.Records },
			"how long reports are kept with their records; 0s = for ever"),
		define("retention.counters", durationKind(), "0s", age,
			func(c *Config) *time.Duration { return &c.Retention.Counters },
			"how long the counts of each day are kept; 0s = for ever").
			needing(rule[Config]{
				want: "a duration that is not shorter than retention.records, whose sums the counters are",
				valid: func(c Config) bool {
					r := c.Retention
					return r.Counters == 0 || r.Records != 0 && r.Records <= r.Counters
				},
			}),
		define("retention.rejected", durationKind(), "2160h", age,
			func(c *Config) *time.Duration { return &c.Retention.Rejected },
			"how long what could not be used is kept; 0s = for ever"),
		define("retention.failure", durationKind(), "336h", age,
			func(c *Config) *time.Duration { return &c.Retention.Failure },
			"how long failure reports are stored, read or not, with their originals; 0s = for ever"),
		define("secret.file", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Secret.File },
			"the file with the key that seals the passwords of mailboxes; made at the first use").
			defaulting("secret.key in the data folder"),
		define("senders.networks", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Senders.Networks },
			"a file in MMDB form that tells the network of an address").
			defaulting("networks.mmdb in the data folder or beside the program"),
		define("senders.countries", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Senders.Countries },
			"a file in MMDB form that tells the country of an address").
			defaulting("countries.mmdb in the data folder or beside the program"),
		define("senders.catalogue", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Senders.Catalogue },
			"a TOML file of services, forwarders and mailing lists that are recognised before the built-in ones").
			defaulting("empty = the built-in ones alone"),
	}
}
