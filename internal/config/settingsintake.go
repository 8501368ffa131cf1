package config

import (
	"slices"
	"time"
)

// reportSettings returns the settings for receiving and storing reports.
func reportSettings() []Setting {
	return slices.Concat(limitSettings(), intakeSettings(), mailIntakeSettings(), retentionSettings(), fileSettings())
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
			"maximum compression ratio, from 1 MiB of decompressed content on"),
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
	}
}

func intakeSettings() []Setting {
	return []Setting{
		define("intake.forged", wordKind(), ForgedMark, oneOf(ForgedMark, ForgedReject),
			func(c *Config) *string { return &c.Intake.Forged },
			"whether reports in messages with a spoofed sender are marked (mark) or rejected (refuse)"),
		define("intake.folder", textKind(), "", orEmpty(folder()),
			func(c *Config) *string { return &c.Intake.Folder },
			"folder whose files are imported as reports, then moved to its subfolder done or rejected").
			defaulting("empty = off"),
		define("intake.folder_team", textKind(), "default", teamName(),
			func(c *Config) *string { return &c.Intake.FolderTeam },
			"team that receives the reports in intake.folder"),
	}
}

// mailIntakeSettings returns the sections smtp and imap.
func mailIntakeSettings() []Setting {
	return []Setting{
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
		define("smtp.rate", numberKind(), "600", numberUpTo(1_000_000, "off"),
			func(c *Config) *float64 { return &c.SMTP.Rate },
			"maximum messages per minute and reporting address, at most half from one network; 0 = unlimited"),
	}
}

func retentionSettings() []Setting {
	age := ageFrom(time.Hour, 876_000*time.Hour) // a hundred years
	return []Setting{
		define("retention.originals", durationKind(), "2160h", age,
			func(c *Config) *time.Duration { return &c.Retention.Originals },
			"how long to keep the original messages and files, and rejected reports; 0s = forever"),
		define("retention.records", durationKind(), "17520h", age,
			func(c *Config) *time.Duration { return &c.Retention.Records },
			"how long to keep reports with their records; 0s = forever"),
		define("retention.failure", durationKind(), "336h", age,
			func(c *Config) *time.Duration { return &c.Retention.Failure },
			"how long to keep failure reports with their originals; 0s = forever"),
		define("retention.audit", durationKind(), "17520h", age,
			func(c *Config) *time.Duration { return &c.Retention.Audit },
			"how long to keep the audit log; 0s = forever"),
	}
}

// fileSettings returns the sections secret and senders.
func fileSettings() []Setting {
	return []Setting{
		define("secret.file", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Secret.File },
			"file with the key that encrypts mailbox passwords and webhook secrets; created on first use").
			defaulting("secret.key in the data folder"),
		define("senders.catalogue", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Senders.Catalogue },
			"TOML file with services, forwarders and mailing lists that take precedence over the built-in ones").
			defaulting("empty = built-in only"),
	}
}
