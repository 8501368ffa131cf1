package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// attackRecords is how many records each report of an attacker has.
	attackRecords = 2000
	// plantedRecords is how many distinct addresses an attacker reads back.
	plantedRecords = 50_000
	// plantedReports is how many short reports an attacker searches, archives in how many archives they come.
	plantedReports, archives = 5000, 10
	// fairSamples is how often the victim delivers by each way.
	fairSamples = 45
	fairGoal    = "at most 3"
)

// attackers is how many attackers work at once, each in a team of its own.
const attackers = 10

// measureFairness measures how long a victim waits until a report counts, by
// each way that it takes, while attackers of other teams saturate an entrance.
func measureFairness(ctx context.Context, s settings, d *daemon) ([]figure, error) {
	// The victim shares this process with the DNS server that checks ask. With a processor
	// for each, the kernel and not the Go scheduler lets the victim go first.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4 * runtime.NumCPU()))
	field, err := newField(ctx, d)
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, entrance := range entrances {
		if s.entrance != "" && s.entrance != entrance {
			continue
		}
		if err := d.rest(ctx); err != nil {
			return nil, err
		}
		quiet, err := field.deliverAll(ctx)
		if err != nil {
			return nil, err
		}
		attacked, err := field.attacked(ctx, entrance)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entrance, err)
		}
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
	return figures, nil
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

func newField(ctx context.Context, d *daemon) (*field, error) {
	f := &field{d: d, target: target{d.address, d.mail}}
	var zone strings.Builder
	for i := range attackers + 1 {
		team, err := f.newTeam(ctx, i)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&zone, "_dmarc.%s. TXT \"v=DMARC1; p=none\"\n", team.Domain)
		if i == 0 {
			f.victim = team
		} else {
			f.attackers = append(f.attackers, team)
		}
	}
	if err := d.dns.Set(zone.String()); err != nil {
		return nil, err
	}
	planted, err := fairReport(plantedRecords)
	if err != nil {
		return nil, err
	}
	for _, team := range f.attackers {
		if err := f.upload(ctx, team, numbered(planted, f.number.Add(1), team)); err != nil {
			return nil, err
		}
		for range archives {
			archive, err := f.archive(plantedReports/archives, team)
			if err != nil {
				return nil, err
			}
			if err := f.upload(ctx, team, archive); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// archive returns a ZIP archive with short reports of a team.
func (f *field) archive(reports int, team fairTeam) ([]byte, error) {
	var b bytes.Buffer
	files := zip.NewWriter(&b)
	short, err := fairReport(1)
	for i := 0; i < reports && err == nil; i++ {
		var file io.Writer
		if file, err = files.Create(fmt.Sprintf("%d.xml", i)); err == nil {
			_, err = file.Write(numbered(short, f.number.Add(1), team))
		}
	}
	err = errors.Join(err, files.Close())
	return b.Bytes(), err
}

// newTeam makes a team by the command line, with a domain and a user.
func (f *field) newTeam(ctx context.Context, i int) (fairTeam, error) {
	name := fmt.Sprintf("team%d", i)
	team := fairTeam{Domain: fmt.Sprintf("fair%02d.example", i)}
	run := func(args ...string) string {
		command := exec.CommandContext(ctx, f.d.process.Path, args...) //nolint:gosec // our own program
		command.Env = f.d.process.Env
		printed, err := command.Output()
		if err != nil {
			return fmt.Sprint("!", err)
		}
		return strings.TrimSpace(string(printed))
	}
	run("team", "create", name, "--api")
	team.Token = run("token", "create", "--team", name)
	run("domain", "add", "--team", name, team.Domain)
	var listed []struct {
		Address string `json:"report_address"`
	}
	if err := json.Unmarshal([]byte(run("domain", "list", "--team", name, "--json")), &listed); err != nil || len(listed) != 1 {
		return team, errors.Join(err, fmt.Errorf("team %s has %d domains", name, len(listed)))
	}
	team.Address = listed[0].Address
	team.Mailbox, _, _ = strings.Cut(team.Address, "@")
	email := "owner@" + team.Domain
	link, err := url.Parse(run("user", "invite", email, "--team", name, "--role", "owner"))
	if err != nil {
		return team, err
	}
	form := url.Values{"email": {email}, "password": {"correct horse battery staple"}}.Encode()
	team.Session, err = f.signUp(ctx, link.Path, form)
	return team, err
}

// attacked measures the victim while attackers use an entrance.
func (f *field) attacked(ctx context.Context, entrance string) (took []float64, err error) {
	stop, err := startAttack(ctx, attack{
		Target: f.target, Teams: f.attackers, Entrance: entrance, Attackers: attackers, First: f.number.Add(1 << 32),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return f.deliverAll(ctx)
}

// deliverAll has the victim deliver reports in turn by every way and returns
// the median of the seconds that each way took until the report counted.
func (f *field) deliverAll(ctx context.Context) ([]float64, error) {
	took := make([][]float64, len(deliveryWays))
	for range fairSamples {
		for way := range deliveryWays {
			began := time.Now()
			if err := f.deliver(ctx, way); err != nil {
				return nil, fmt.Errorf("the victim's %s: %w", deliveryWays[way], err)
			}
			took[way] = append(took[way], time.Since(began).Seconds())
		}
	}
	medians := make([]float64, len(took))
	for way := range took {
		medians[way] = median(took[way])
	}
	return medians, nil
}

// deliver has one report of the victim delivered and returns when it counts.
func (f *field) deliver(ctx context.Context, way int) error {
	const victimRecords = 10
	if way == 2 {
		// The answer says that it is stored.
		body := numbered([]byte(fairTLS(fairID, 1)), f.number.Add(1), f.victim)
		return f.send(ctx, f.victim, http.MethodPost, "/tlsrpt/"+f.victim.Mailbox, "application/tlsrpt+json", body, nil)
	}
	report, err := fairReport(victimRecords)
	if err != nil {
		return err
	}
	report = numbered(report, f.number.Add(1), f.victim)
	if way == 0 {
		err = f.upload(ctx, f.victim, report)
	} else {
		err = f.mail(ctx, "127.2.0.1", f.victim, report)
	}
	if err != nil {
		return err
	}
	f.counted += victimRecords
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	for began := time.Now(); ; <-pause.C {
		var sum struct{ Total int64 }
		if err := f.send(ctx, f.victim, http.MethodGet, "/api/reports/"+f.victim.Domain, "", nil, &sum); err != nil {
			return err
		}
		if sum.Total >= f.counted {
			return nil
		}
		if time.Since(began) > 5*time.Minute {
			return fmt.Errorf("got %d messages counted, want %d", sum.Total, f.counted)
		}
	}
}

// fairReport returns an aggregate report of one message from each of so many
// addresses, with places for its id and its domain.
func fairReport(records int) ([]byte, error) {
	var b bytes.Buffer
	domain := "fair00.example"
	s := sample{number: 0, domain: domain, records: records, day: time.Now().Unix()/86_400 - 1}
	err := aggregate.Render(&b, aggregate.Report{
		Version: "1.0",
		Metadata: aggregate.Metadata{
			OrgName: "receiver.example", Email: "dmarc@receiver.example", ReportID: fairID, Begin: s.begin(), End: s.begin() + 86_399,
		},
		Policy: aggregate.PublishedPolicy{Domain: domain, P: aggregate.PolicyNone, SP: aggregate.PolicyNone, ADKIM: "r", ASPF: "r"},
	}, func(yield func(aggregate.Record) bool) {
		for n := range records {
			r := s.record(n)
			r.Source = fmt.Sprintf("%d.%d.%d.%d", 20+n%180, n/180%256, n/180/256%256, 1)
			r.Count = 1
			if !yield(r) {
				return
			}
		}
	})
	return b.Bytes(), err
}

// fairTLS returns a TLS report with so many failures.
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
