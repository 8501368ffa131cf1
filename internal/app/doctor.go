package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Diagnosis is the result of one check of an installation.
type Diagnosis struct {
	Part  string         `json:"part"`
	State DiagnosisState `json:"state"`
	What  string         `json:"what"`
	Fix   string         `json:"fix"` // "" if there is nothing to fix
}

// DiagnosisState is the severity of a Diagnosis.
type DiagnosisState string

const (
	// Healthy means that there is no problem.
	Healthy DiagnosisState = "ok"
	// Advised means that it works but could be improved.
	Advised DiagnosisState = "advice"
	// Sick means that it does not work.
	Sick DiagnosisState = "bad"
	// Unseen means that the check could not be completed.
	Unseen DiagnosisState = "unseen"
)

const (
	doctorTimeout = 5 * time.Second
	// integrityTimeout bounds the integrity check, which reads the whole database.
	integrityTimeout = 5 * time.Minute
)

// Diagnose checks an installation, running or not, without changing it.
func Diagnose(ctx context.Context, cfg config.Config, environ []string) []Diagnosis {
	var found []Diagnosis
	found = append(found, diagnoseEnvironment(environ)...)
	found = append(found, diagnoseHTTPS(cfg)...)
	found = append(found, diagnoseProxies(cfg)...)
	found = append(found, diagnoseMemory(memory.FindLimit()))
	if !store.IsPostgres(cfg.Database) {
		found = append(found, diagnoseFolder(cfg.Data))
	}
	found = append(found, diagnoseDatabase(ctx, cfg)...)
	found = append(found, diagnoseNetworks(cfg, time.Now())...)
	return append(found, diagnoseDNS(ctx, cfg)...)
}

func diagnoseEnvironment(environ []string) []Diagnosis {
	var found []Diagnosis
	for _, unknown := range config.UnknownEnvironment(environ) {
		fix := "Remove it from the environment; `dmarcd config` lists all settings."
		if unknown.Nearest != "" {
			fix = "Did you mean " + unknown.Nearest + "?"
		}
		found = append(found, Diagnosis{"configuration", Advised, unknown.Name + " is not a setting and has no effect.", fix})
	}
	if len(found) == 0 {
		found = append(found, Diagnosis{"configuration", Healthy, "All settings are known and valid.", ""})
	}
	return found
}

// diagnoseMemory reports the soft memory limit.
func diagnoseMemory(limit memory.Limit) Diagnosis {
	what := fmt.Sprintf("The soft limit is %d MiB (%s); large responses share %d MiB.", limit.Bytes>>20, limit.Source, limit.Reads()>>20)
	return Diagnosis{"memory", Healthy, what, ""}
}

// diagnoseProxies reports whether client addresses are known behind a reverse proxy,
// which an https base URL implies unless dmarcd serves HTTPS.
func diagnoseProxies(cfg config.Config) []Diagnosis {
	const part = "reverse proxy"
	switch {
	case len(cfg.TrustedProxies) > 0:
		return []Diagnosis{{part, Healthy, "X-Forwarded-For of the trusted proxies is used as the client address.", ""}}
	case strings.HasPrefix(cfg.BaseURL, "https:") && cfg.TLS == config.TLSOff:
		return []Diagnosis{{
			part, Advised, "Clients connect through a proxy (https), and all of them appear with its address.",
			"Set DMARCD_TRUSTED_PROXIES to the address that the proxy connects from.",
		}}
	}
	return nil
}

func diagnoseFolder(folder string) Diagnosis {
	const part = "data folder"
	info, err := os.Stat(folder)
	switch {
	case os.IsNotExist(err):
		return Diagnosis{part, Advised, folder + " does not exist yet.", "The first start creates it."}
	case err != nil:
		return Diagnosis{part, Sick, err.Error(), "Set DMARCD_DATA to a folder that this user can access."}
	case !info.IsDir():
		return Diagnosis{part, Sick, folder + " is not a folder.", "Set DMARCD_DATA to a folder."}
	}
	file, err := os.CreateTemp(folder, ".dmarcd-doctor-")
	if err != nil {
		return Diagnosis{part, Sick, folder + " is not writable: " + err.Error(), "Give the user that runs dmarcd write permission, or free disk space."}
	}
	_ = file.Close()                                                 // nothing was written
	_ = os.Remove(filepath.Join(folder, filepath.Base(file.Name()))) // and nothing is left
	if info.Mode().Perm()&0o007 != 0 {
		return Diagnosis{part, Advised, folder + " is accessible to other users of this machine.", "Restrict access: chmod o-rwx " + folder}
	}
	return Diagnosis{part, Healthy, folder + " is writable.", ""}
}

func diagnoseDatabase(ctx context.Context, cfg config.Config) []Diagnosis {
	const part = "database"
	if !store.IsPostgres(cfg.Database) {
		if _, err := os.Stat(cfg.Database); os.IsNotExist(err) {
			return []Diagnosis{{part, Advised, cfg.Database + " does not exist yet.", "The first start creates it."}}
		}
	}
	thorough, cancel := context.WithTimeout(ctx, integrityTimeout)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	s, err := store.Open(ctx, cfg.Database, store.Options{Secrets: secretKeys(cfg), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Start the database, or correct DMARCD_DATABASE."}}
	}
	defer func() { _ = s.Close() }() // opened read-only
	if err := s.CheckSchema(ctx); err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Run `dmarcd migrate`, or use the version of dmarcd that last wrote the database."}}
	}
	found := []Diagnosis{{part, Healthy, "The " + s.Stats().Engine + " database is reachable and its schema is up to date.", ""}}
	found = append(found, diagnoseAuthority(ctx, cfg, s)...)
	found = append(found, diagnoseTeams(ctx, s))
	found = append(found, diagnoseIntake(ctx, cfg, s)...)
	found = append(found, diagnoseZoneState(ctx, cfg, s)...)
	switch problem, err := s.Integrity(thorough); {
	case problem != "":
		found = append(found, Diagnosis{part, Sick, "The database is damaged or its counters are wrong: " + problem, "Restore a backup made with `dmarcd backup`."})
	case errors.Is(thorough.Err(), context.DeadlineExceeded):
		found = append(found, Diagnosis{part, Unseen, "The integrity check timed out.", "Try again when the database is less busy."})
	case err != nil:
		found = append(found, Diagnosis{part, Sick, "The database cannot be read: " + err.Error(), "Restore a backup made with `dmarcd backup`."})
	}
	return append(found, diagnoseAudit(thorough, s))
}

// diagnoseAudit reports whether audit entries were changed or removed.
func diagnoseAudit(ctx context.Context, s *store.Store) Diagnosis {
	const part = "audit log"
	problem, err := s.CheckAudit(ctx)
	switch {
	case problem != "":
		return Diagnosis{
			part, Sick, "The audit log was changed outside of dmarcd, or secret.key was replaced: " + problem + ".",
			"If the key was replaced, restore the old one behind the new one, and run `dmarcd secret rotate`. Otherwise compare the log with a backup or an export, and find out who can write to the database.",
		}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Diagnosis{part, Unseen, "The check timed out.", "Try again when the database is less busy."}
	case err != nil:
		return Diagnosis{part, Sick, "The audit log cannot be checked: " + err.Error(), "Restore secret.key, or the database, from a backup."}
	}
	return Diagnosis{part, Healthy, "No entry was changed or removed.", ""}
}

// diagnoseTeams reports whether any team can use the API.
func diagnoseTeams(ctx context.Context, s *store.Store) Diagnosis {
	const part = "teams"
	teams, err := s.Teams(ctx)
	if err != nil {
		return Diagnosis{part, Unseen, err.Error(), "Try again."}
	}
	var allowed []string
	for _, team := range teams {
		if !team.API {
			continue
		}
		tokens, err := s.Team(team.ID).Tokens(ctx)
		if err != nil {
			return Diagnosis{part, Unseen, err.Error(), "Try again."}
		}
		for _, token := range tokens {
			if token.Valid(time.Now()) {
				allowed = append(allowed, team.Name)
				break
			}
		}
	}
	if len(allowed) == 0 {
		return Diagnosis{
			part, Advised, fmt.Sprintf("None of %d teams is on the API whitelist with a valid token.", len(teams)),
			"Run `dmarcd team allow NAME`, then `dmarcd token create --team NAME`.",
		}
	}
	return Diagnosis{part, Healthy, fmt.Sprintf("%d of %d teams can use the API.", len(allowed), len(teams)), ""}
}

// diagnoseIntake reports that no reports can arrive.
func diagnoseIntake(ctx context.Context, cfg config.Config, s *store.Store) []Diagnosis {
	const part = "intake"
	domain, err := reportDomain(ctx, s, cfg.ReportDomain)
	if err != nil || domain != "" || cfg.Intake.Folder != "" {
		return nil
	}
	teams, err := s.Teams(ctx)
	if err != nil {
		return []Diagnosis{{part, Unseen, err.Error(), "Try again."}}
	}
	for _, team := range teams {
		mailboxes, err := s.Team(team.ID).Mailboxes(ctx)
		if err != nil {
			return []Diagnosis{{part, Unseen, err.Error(), "Try again."}}
		}
		if len(mailboxes) > 0 {
			return nil
		}
	}
	return []Diagnosis{{
		part, Advised, "Reports can only be uploaded: there is no report domain, no drop folder and no mailbox.",
		"Set DMARCD_REPORT_DOMAIN, or run `dmarcd mailbox add`.",
	}}
}

// diagnoseDNS queries every resolver for a name that always exists, and looks up the
// mail server of the report domain.
func diagnoseDNS(ctx context.Context, cfg config.Config) []Diagnosis {
	const part = "DNS"
	all := NewResolver(cfg, nil, nil)
	defer all.Close()
	if err := all.Err(); err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Set DMARCD_DNS to a resolver, such as 192.0.2.53:53."}}
	}
	var found []Diagnosis
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	for _, server := range all.Servers() {
		one := cfg
		one.DNS = []string{server}
		r := NewResolver(one, nil, nil)
		answer := r.Resolve(ctx, dns.Question{Name: "com", Type: dns.NS})
		r.Close()
		if answer.Outcome == dns.Inconclusive {
			found = append(found, Diagnosis{part, Sick, server + " does not answer: " + answer.Reason, "Set DMARCD_DNS to a working resolver; without one, all checks are inconclusive."})
			continue
		}
		found = append(found, Diagnosis{part, Healthy, server + " answers.", ""})
	}
	if cfg.ReportDomain != "" {
		found = append(found, diagnoseReportDomain(ctx, all, cfg.ReportDomain))
	}
	found = append(found, diagnoseZone(ctx, cfg, all)...)
	return found
}

func diagnoseReportDomain(ctx context.Context, r dns.Resolver, name string) Diagnosis {
	const part = "report domain"
	switch answer := r.Resolve(ctx, dns.Question{Name: name, Type: dns.MX}); answer.Outcome {
	case dns.Data:
		hosts := make([]string, len(answer.Records))
		for i, record := range answer.Records {
			hosts[i] = record.Host
		}
		return Diagnosis{part, Healthy, "Mail for " + name + " goes to " + strings.Join(hosts, ", ") + ".", ""}
	case dns.Inconclusive:
		return Diagnosis{part, Unseen, "The MX lookup for " + name + " failed: " + answer.Reason, "Try again when DNS works."}
	default:
		return Diagnosis{part, Sick, name + " has no MX record, so no reports can arrive.", "Publish: " + name + ". MX 10 the.host.that.runs.dmarcd."}
	}
}

// oldNetworks is the age from which a network database is outdated.
const oldNetworks = 365 * 24 * time.Hour

// diagnoseNetworks reports the databases of networks and countries, and their age.
func diagnoseNetworks(cfg config.Config, now time.Time) []Diagnosis {
	const part = "networks"
	atlas, err := OpenAtlas(cfg)
	if err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Replace or remove networks.mmdb and countries.mmdb in the data folder and next to the program."}}
	}
	if _, err := openCatalogue(cfg); err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Correct the file in senders.catalogue (DMARCD_SENDERS_CATALOGUE); docs/senders.md describes its format."}}
	}
	databases := atlas.Databases()
	if len(databases) == 0 {
		return []Diagnosis{{
			part, Advised, "There is no network database: all senders that the catalogue does not have are shown as one.",
			"Run `make build`, which builds one, or put an MMDB file networks.mmdb into the data folder.",
		}}
	}
	var found []Diagnosis
	for _, database := range databases {
		what := fmt.Sprintf("%s was built on %s, %d days ago.", database.Path, database.Built.Format(time.DateOnly), int(now.Sub(database.Built).Hours()/24))
		if now.Sub(database.Built) > oldNetworks {
			found = append(found, Diagnosis{part, Advised, what, "Install a newer file."})
			continue
		}
		found = append(found, Diagnosis{part, Healthy, what, ""})
	}
	return found
}
