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

// Diagnosis is what the doctor says about one part of an installation.
type Diagnosis struct {
	Part  string         `json:"part"`
	State DiagnosisState `json:"state"`
	What  string         `json:"what"`
	Mend  string         `json:"mend"` // "" where there is nothing to mend
}

// DiagnosisState is how bad it is.
type DiagnosisState string

const (
	// Healthy means that nothing is wrong.
	Healthy DiagnosisState = "ok"
	// Advised means that it works, and could be better.
	Advised DiagnosisState = "advice"
	// Sick means that something does not work.
	Sick DiagnosisState = "bad"
	// Unseen means that it could not be looked at.
	Unseen DiagnosisState = "unseen"
)

const (
	doctorTimeout = 5 * time.Second
	// integrityTimeout is how long reading all of a large database may take.
	integrityTimeout = 5 * time.Minute
)

// Diagnose looks at an installation, running or not, and changes nothing of it.
func Diagnose(ctx context.Context, cfg config.Config, environ []string) []Diagnosis {
	var found []Diagnosis
	found = append(found, diagnoseEnvironment(environ)...)
	found = append(found, diagnoseProxies(cfg)...)
	found = append(found, diagnoseMemory(memory.FindLimit(int64(cfg.Limit.Memory)), int64(cfg.Limit.ReadMemory)))
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
		mend := "Take it out of the environment; `dmarcd config` lists all settings."
		if unknown.Nearest != "" {
			mend = "Call it " + unknown.Nearest + ", if that was meant."
		}
		found = append(found, Diagnosis{"configuration", Advised, unknown.Name + " is no setting and has no effect.", mend})
	}
	if len(found) == 0 {
		found = append(found, Diagnosis{"configuration", Healthy, "All settings are known and valid.", ""})
	}
	return found
}

// diagnoseMemory says which soft limit applies, and whether large answers fit under it.
func diagnoseMemory(limit memory.Limit, reads int64) Diagnosis {
	what := fmt.Sprintf("The soft limit is %d MiB (%s); large answers share %d MiB.", limit.Bytes>>20, limit.Source, reads>>20)
	if reads > limit.Bytes/4*3 {
		return Diagnosis{"memory", Advised, what, "Lower DMARCD_LIMIT_READ_MEMORY to half of the limit, or raise the limit."}
	}
	return Diagnosis{"memory", Healthy, what, ""}
}

// diagnoseProxies tells whether clients can be told apart where they come by https,
// which only a proxy in front can speak.
func diagnoseProxies(cfg config.Config) []Diagnosis {
	const part = "reverse proxy"
	switch {
	case len(cfg.TrustedProxies) > 0:
		return []Diagnosis{{part, Healthy, "Its word is taken for the address of a client.", ""}}
	case strings.HasPrefix(cfg.BaseURL, "https:"):
		return []Diagnosis{{
			part, Advised, "Clients come by https, so through a proxy, and all of them seem to have its address.",
			"Let DMARCD_TRUSTED_PROXIES name the address that the proxy connects from.",
		}}
	}
	return nil
}

func diagnoseFolder(folder string) Diagnosis {
	const part = "data folder"
	info, err := os.Stat(folder)
	switch {
	case os.IsNotExist(err):
		return Diagnosis{part, Advised, folder + " is not there yet.", "The first start makes it."}
	case err != nil:
		return Diagnosis{part, Sick, err.Error(), "Let DMARCD_DATA name a folder that this user may enter."}
	case !info.IsDir():
		return Diagnosis{part, Sick, folder + " is no folder.", "Let DMARCD_DATA name a folder."}
	}
	file, err := os.CreateTemp(folder, ".dmarcd-doctor-")
	if err != nil {
		return Diagnosis{part, Sick, "Nothing can be written in " + folder + ": " + err.Error(), "Give it to the user that runs dmarcd, or make room on the disk."}
	}
	_ = file.Close()                                                 // nothing was written
	_ = os.Remove(filepath.Join(folder, filepath.Base(file.Name()))) // and nothing is left
	if info.Mode().Perm()&0o007 != 0 {
		return Diagnosis{part, Advised, folder + " is open to other users of the machine.", "Close it: chmod o-rwx " + folder}
	}
	return Diagnosis{part, Healthy, folder + " can be written.", ""}
}

func diagnoseDatabase(ctx context.Context, cfg config.Config) []Diagnosis {
	const part = "database"
	if !store.IsPostgres(cfg.Database) {
		if _, err := os.Stat(cfg.Database); os.IsNotExist(err) {
			return []Diagnosis{{part, Advised, cfg.Database + " is not there yet.", "The first start makes it."}}
		}
	}
	thorough, cancel := context.WithTimeout(ctx, integrityTimeout)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	s, err := store.Open(ctx, cfg.Database, store.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Start the database, or mend DMARCD_DATABASE."}}
	}
	defer func() { _ = s.Close() }() // it only read
	if err := s.CheckSchema(ctx); err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Run `dmarcd migrate`, or the dmarcd that wrote the database last."}}
	}
	found := []Diagnosis{{part, Healthy, "The " + s.Stats().Engine + " database answers and has the schema of this version.", ""}}
	found = append(found, diagnoseTeams(ctx, s))
	switch problem, err := s.Integrity(thorough); {
	case problem != "":
		found = append(found, Diagnosis{part, Sick, "The database is damaged or its sums are wrong: " + problem, "Restore a backup; `dmarcd backup` makes them."})
	case errors.Is(thorough.Err(), context.DeadlineExceeded):
		found = append(found, Diagnosis{part, Unseen, "It takes too long to read all of the database.", "Look again when less is done with it."})
	case err != nil:
		found = append(found, Diagnosis{part, Sick, "The database cannot be read: " + err.Error(), "Restore a backup; `dmarcd backup` makes them."})
	}
	return found
}

// diagnoseTeams tells whether anybody can use the API.
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
			part, Advised, fmt.Sprintf("Of %d teams none is on the API whitelist with a valid token.", len(teams)),
			"`dmarcd team allow NAME`, then `dmarcd token create --team NAME`.",
		}
	}
	return Diagnosis{part, Healthy, fmt.Sprintf("%d of %d teams can use the API.", len(allowed), len(teams)), ""}
}

// diagnoseDNS asks every resolver for something that always exists, and for the
// mail server of the report domain.
func diagnoseDNS(ctx context.Context, cfg config.Config) []Diagnosis {
	const part = "DNS"
	all := NewResolver(cfg, nil, nil)
	defer all.Close()
	if err := all.Err(); err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Let DMARCD_DNS name a resolver, such as 192.0.2.53:53."}}
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
			found = append(found, Diagnosis{part, Sick, server + " does not answer: " + answer.Reason, "Let DMARCD_DNS name a resolver that does; checks are inconclusive without one."})
			continue
		}
		found = append(found, Diagnosis{part, Healthy, server + " answers.", ""})
	}
	if cfg.ReportDomain != "" {
		found = append(found, diagnoseReportDomain(ctx, all, cfg.ReportDomain))
	}
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
		return Diagnosis{part, Unseen, "Nobody could tell where mail for " + name + " goes: " + answer.Reason, "Try again when the DNS answers."}
	default:
		return Diagnosis{part, Sick, name + " has no MX record: no report can arrive.", "Publish: " + name + ". MX 10 the.host.that.runs.dmarcd."}
	}
}
