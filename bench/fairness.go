package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dmarcd/dmarcd/aggregate"
)

// The load of the fairness suite.
const (
	// attackRecords is the number of records in each report of an attacker.
	attackRecords = 2000
	// plantedRecords is the number of distinct addresses that an attacker reads back.
	plantedRecords = 50_000
	// plantedReports is the number of short reports that an attacker searches; archives is the
	// number of archives that contain them.
	plantedReports, archives = 5000, 10
	// fairSamples is the number of deliveries of the victim by each way.
	fairSamples = 45
	fairGoal    = "at most 3"
)

// attackers is the number of concurrent attackers, each in its own team.
const attackers = 10

// measureFairness measures how long a victim waits until a report is counted, by each delivery
// way, while attackers of other teams saturate an entrance.
func measureFairness(ctx context.Context, s settings, d *daemon) []figure {
	// The victim shares this process with the DNS server of the checks. With many threads, the
	// kernel instead of the Go scheduler prefers the victim.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4 * runtime.NumCPU()))
	field := newField(ctx, d)
	var figures []figure
	for _, entrance := range entrances {
		if s.entrance != "" && s.entrance != entrance {
			continue
		}
		d.rest(2 * time.Second)
		quiet, attacked := field.deliverAll(ctx), field.attacked(ctx, entrance)
		fmt.Fprintf(os.Stderr, "%s: quiet %.4f s, attacked %.4f s\n", entrance, quiet, attacked)
		worst := 0.0
		var values []string
		for way, name := range deliveryWays {
			multiple := attacked[way] / quiet[way]
			worst = max(worst, multiple)
			values = append(values, fmt.Sprintf("%s %.1f", name, multiple))
		}
		figures = append(figures, figure{
			fmt.Sprintf("%s saturated by %d attackers: the victim's time until a report counts, as a multiple of the quiet time", entrance, attackers),
			fmt.Sprintf("%s (worst %.1f)", strings.Join(values, "; "), worst), fairGoal,
		})
	}
	return figures
}

// deliveryWays are the ways in which the victim's reports arrive.
var deliveryWays = []string{"upload", "mail", "TLS report"}

// field is a daemon with a victim and attackers.
type field struct {
	target
	d         *daemon
	victim    fairTeam
	attackers []fairTeam
	number    atomic.Int64
	counted   int64 // messages of the victim so far
}

func newField(ctx context.Context, d *daemon) *field {
	f := &field{d: d, target: target{d.address, d.mail}}
	var zone strings.Builder
	for i := range attackers + 1 {
		team := f.newTeam(ctx, i)
		fmt.Fprintf(&zone, "_dmarc.%s. TXT \"v=DMARC1; p=none\"\n", team.Domain)
		if i == 0 {
			f.victim = team
		} else {
			f.attackers = append(f.attackers, team)
		}
	}
	must(d.dns.Set(zone.String()))
	planted := fairReport(plantedRecords)
	for _, team := range f.attackers {
		must(f.upload(ctx, team, numbered(planted, f.number.Add(1), team)))
		for range archives {
			must(f.upload(ctx, team, f.archive(plantedReports/archives, team)))
		}
	}
	return f
}

// archive returns a ZIP archive with short reports of a team.
func (f *field) archive(reports int, team fairTeam) []byte {
	var b bytes.Buffer
	files, short := zip.NewWriter(&b), fairReport(1)
	for i := range reports {
		file := get(files.Create(fmt.Sprintf("%d.xml", i)))
		get(file.Write(numbered(short, f.number.Add(1), team)))
	}
	must(files.Close())
	return b.Bytes()
}

// newTeam creates a team with a domain and a user on the command line.
func (f *field) newTeam(ctx context.Context, i int) fairTeam {
	name := fmt.Sprintf("team%d", i)
	team := fairTeam{Domain: fmt.Sprintf("fair%02d.example", i)}
	run := func(args ...string) string {
		command := exec.CommandContext(ctx, f.d.process.Path, args...) //nolint:gosec // our own program
		command.Env = f.d.process.Env
		return strings.TrimSpace(string(get(command.Output())))
	}
	run("team", "create", name, "--api")
	team.Token = run("token", "create", "--team", name)
	run("domain", "add", "--team", name, team.Domain)
	var listed []struct {
		Address string `json:"report_address"`
	}
	must(json.Unmarshal([]byte(run("domain", "list", "--team", name, "--json")), &listed))
	team.Address = listed[0].Address
	team.Mailbox, _, _ = strings.Cut(team.Address, "@")
	email := "owner@" + team.Domain
	link := get(url.Parse(run("user", "invite", email, "--team", name, "--role", "owner")))
	form := url.Values{"email": {email}, "password": {"correct horse battery staple"}}.Encode()
	team.Session = f.signUp(ctx, link.Path, form)
	return team
}

// attacked measures the victim while attackers use an entrance.
func (f *field) attacked(ctx context.Context, entrance string) (took []float64) {
	stop := startAttack(ctx, attack{
		Target: f.target, Teams: f.attackers, Entrance: entrance, Attackers: attackers, First: f.number.Add(1 << 32),
	})
	defer func() { must(stop()) }()
	return f.deliverAll(ctx)
}

// deliverAll delivers reports of the victim by all ways in turn, and returns the median time in
// seconds until they were counted, for each way.
func (f *field) deliverAll(ctx context.Context) []float64 {
	took := make([][]float64, len(deliveryWays))
	for range fairSamples {
		for way := range deliveryWays {
			began := time.Now()
			if err := f.deliver(ctx, way); err != nil {
				must(fmt.Errorf("the victim's %s: %w", deliveryWays[way], err))
			}
			took[way] = append(took[way], time.Since(began).Seconds())
		}
	}
	medians := make([]float64, len(took))
	for way := range took {
		medians[way] = median(took[way])
	}
	return medians
}

// deliver delivers one report of the victim and returns when it is counted.
func (f *field) deliver(ctx context.Context, way int) error {
	const victimRecords = 10
	if way == 2 {
		// The answer confirms that it is stored.
		body := numbered([]byte(fairTLS(fairID, 1)), f.number.Add(1), f.victim)
		return f.send(ctx, f.victim, http.MethodPost, "/tlsrpt/"+f.victim.Mailbox, "application/tlsrpt+json", body, nil)
	}
	report := numbered(fairReport(victimRecords), f.number.Add(1), f.victim)
	if way == 0 {
		must(f.upload(ctx, f.victim, report))
	} else {
		must(f.mail(ctx, "127.2.0.1", f.victim, report))
	}
	f.counted += victimRecords
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	for began := time.Now(); ; <-pause.C {
		var sum struct{ Total int64 }
		must(f.send(ctx, f.victim, http.MethodGet, "/api/reports/"+f.victim.Domain, "", nil, &sum))
		if sum.Total >= f.counted {
			return nil
		}
		if time.Since(began) > 5*time.Minute {
			return fmt.Errorf("got %d messages counted, want %d", sum.Total, f.counted)
		}
	}
}

// fairReport returns an aggregate report with one message from each of records addresses, and
// placeholders for its id and its domain.
func fairReport(records int) []byte {
	var b bytes.Buffer
	s := sample{number: 0, domain: "fair00.example", records: records, day: time.Now().Unix()/86_400 - 1}
	s.render(&b, "receiver.example", fairID, func(yield func(aggregate.Record) bool) {
		for n := range records {
			r := s.record(n)
			r.Source = fmt.Sprintf("%d.%d.%d.%d", 20+n%180, n/180%256, n/180/256%256, 1)
			r.Count = 1
			if !yield(r) {
				return
			}
		}
	})
	return b.Bytes()
}

// fairTLS returns a TLS report with that many failures.
func fairTLS(id string, failures int) string {
	var details []string
	for n := range failures {
		details = append(details, fmt.Sprintf(`{"result-type": "certificate-expired", "sending-mta-ip": "192.0.2.%d",
			"receiving-mx-hostname": "mx%d.fair00.example", "failed-session-count": 1}`, n%250, n))
	}
	return `{"organization-name": "Receiver", "contact-info": "tls@receiver.example", "report-id": "` + id + `",
		"date-range": {"start-datetime": "2026-11-14T00:00:00Z", "end-datetime": "2026-11-14T23:59:59Z"},
		"policies": [{"policy": {"policy-type": "no-policy-found", "policy-domain": "fair00.example"},
			"summary": {"total-successful-session-count": 1, "total-failure-session-count": ` + fmt.Sprint(failures) + `},
			"failure-details": [` + strings.Join(details, ",") + `]}]}`
}
