package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/smtp"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dmarcd/dmarcd/aggregate"
	harness "github.com/dmarcd/dmarcd/test/daemon"
)

// The load of the fairness suite.
const (
	// maxAttackerTeams is how many teams the attackers belong to at most.
	maxAttackerTeams = 10
	// attackRecords is how many records each report of an attacker has.
	attackRecords = 2000
	// plantedRecords is how many distinct addresses an attacker reads back.
	plantedRecords = 50_000
	// fairSamples is how often the victim delivers by each way.
	fairSamples = 5
	fairGoal    = "at most 3"
)

// attackerCounts are how many attackers work at once.
var attackerCounts = []int{1, 10, 50}

// measureFairness measures how long a victim waits until a report counts, by
// each way that it takes, while attackers of other teams saturate an entrance.
func measureFairness(ctx context.Context, s settings, e engine) (_ []figure, err error) {
	d, err := startDaemon(ctx, s, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	field, err := newField(ctx, d)
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, entrance := range field.entrances() {
		multiples := make([][]string, len(deliveryWays))
		worst := 0.0
		for _, attackers := range attackerCounts {
			if err := field.rest(ctx); err != nil {
				return nil, err
			}
			quiet, err := field.deliverAll(ctx)
			if err != nil {
				return nil, err
			}
			attacked, err := field.attacked(ctx, entrance, attackers)
			if err != nil {
				return nil, fmt.Errorf("%s, %d attackers: %w", entrance.name, attackers, err)
			}
			fmt.Fprintf(os.Stderr, "%s, %d attackers: quiet %.3f s, attacked %.3f s\n", entrance.name, attackers, quiet, attacked)
			for way := range deliveryWays {
				multiple := attacked[way] / quiet[way]
				worst = max(worst, multiple)
				multiples[way] = append(multiples[way], fmt.Sprintf("%.1f", multiple))
			}
		}
		var values []string
		for way, name := range deliveryWays {
			values = append(values, name+" "+strings.Join(multiples[way], ", "))
		}
		figures = append(figures, figure{
			fmt.Sprintf("%s saturated by 1, 10 and 50 attackers: the victim's time until a report counts, as a multiple of the quiet time", entrance.name),
			fmt.Sprintf("%s (worst %.1f)", strings.Join(values, "; "), worst), fairGoal,
		})
	}
	return figures, nil
}

// deliveryWays are the ways in which the victim's reports arrive.
var deliveryWays = []string{"upload", "mail", "TLS report"}

// field is a daemon with a victim and attackers.
type field struct {
	d         *daemon
	victim    fairTeam
	attackers []fairTeam
	report    []byte // an attacker's, with a place for its id
	tls       []byte // the same for a TLS report
	number    atomic.Int64
	counted   int64 // messages of the victim so far
}

// fairTeam is a team with all that a client of it needs.
type fairTeam struct {
	domain, token, address, mailbox string
	pages                           *http.Client
}

// fairID is the place of a report's id, as long as every id.
const fairID = "id-0000000000000000"

func newField(ctx context.Context, d *daemon) (*field, error) {
	f := &field{d: d}
	var zone strings.Builder
	for i := range maxAttackerTeams + 1 {
		team, err := f.newTeam(ctx, i)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&zone, "_dmarc.%s. TXT \"v=DMARC1; p=none\"\n", team.domain)
		if i == 0 {
			f.victim = team
		} else {
			f.attackers = append(f.attackers, team)
		}
	}
	if err := d.dns.Set(zone.String()); err != nil {
		return nil, err
	}
	f.tls = []byte(fairTLS(fairID, attackRecords))
	report, err := fairReport(attackRecords)
	if err != nil {
		return nil, err
	}
	f.report = report
	planted, err := fairReport(plantedRecords)
	if err != nil {
		return nil, err
	}
	for _, team := range f.attackers {
		if err := f.upload(ctx, team, f.numbered(planted, team)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// newTeam makes a team by the command line, with a domain and a user.
func (f *field) newTeam(ctx context.Context, i int) (fairTeam, error) {
	name := fmt.Sprintf("team%d", i)
	team := fairTeam{domain: fmt.Sprintf("fair%02d.example", i)}
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
	team.token = run("token", "create", "--team", name)
	run("domain", "add", "--team", name, team.domain)
	var listed []struct {
		Address string `json:"report_address"`
	}
	if err := json.Unmarshal([]byte(run("domain", "list", "--team", name, "--json")), &listed); err != nil || len(listed) != 1 {
		return team, errors.Join(err, fmt.Errorf("team %s has %d domains", name, len(listed)))
	}
	team.address = listed[0].Address
	team.mailbox, _, _ = strings.Cut(team.address, "@")
	email := "owner@" + team.domain
	link, err := url.Parse(run("user", "invite", email, "--team", name, "--role", "owner"))
	if err != nil {
		return team, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return team, err
	}
	team.pages = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	form := url.Values{"email": {email}, "password": {"correct horse battery staple"}}.Encode()
	return team, f.send(ctx, team, http.MethodPost, link.Path, "application/x-www-form-urlencoded", []byte(form), nil)
}

// send sends a request to the API with the team's token, or to the pages with
// its session. Any answer that is not an error of the daemon will do.
func (f *field) send(ctx context.Context, team fairTeam, method, path, media string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+f.d.address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", media)
	client := team.pages
	if strings.HasPrefix(path, "/api/") {
		r.Header.Set("Authorization", "Bearer "+team.token)
	} else {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	content, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case into != nil && response.StatusCode == http.StatusOK:
		return json.Unmarshal(content, into)
	case response.StatusCode == http.StatusInternalServerError, into != nil:
		return fmt.Errorf("%s %s: got status %d: %.200s", method, path, response.StatusCode, content)
	}
	return nil
}

// numbered returns a report about the team's domain with an id of its own.
func (f *field) numbered(report []byte, team fairTeam) []byte {
	id := fmt.Sprintf("id-%016d", f.number.Add(1))
	return bytes.ReplaceAll(bytes.Replace(report, []byte(fairID), []byte(id), 1), []byte("fair00.example"), []byte(team.domain))
}

// upload delivers a report by the API.
func (f *field) upload(ctx context.Context, team fairTeam, report []byte) error {
	return f.send(ctx, team, http.MethodPost, "/api/reports", "application/octet-stream", report, nil)
}

// mail delivers a report by SMTP, from an address of loopback.
func (f *field) mail(ctx context.Context, from string, team fairTeam, report []byte) error {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(ctx, "tcp", f.d.mail)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // Quit has ended it, or an error
	client, err := smtp.NewClient(conn, "bench")
	if err != nil {
		return err
	}
	if err := errors.Join(client.Mail("dmarc@receiver.example"), client.Rcpt(team.address)); err != nil {
		return err
	}
	w, err := client.Data()
	if err != nil {
		return err
	}
	header := "From: dmarc@receiver.example\r\nSubject: Report\r\nMIME-Version: 1.0\r\nContent-Type: text/xml\r\n\r\n"
	if _, err := w.Write(append([]byte(header), report...)); err != nil {
		return err
	}
	return errors.Join(w.Close(), client.Quit())
}

// entrance is a way to keep the daemon busy.
type entrance struct {
	name string
	// strike uses the entrance once, as the attacker of that number.
	strike func(ctx context.Context, attacker int) error
}

func (f *field) team(attacker int) fairTeam { return f.attackers[attacker%len(f.attackers)] }

// entrances are all ways to give the daemon work.
func (f *field) entrances() []entrance {
	return []entrance{
		{"API upload", func(ctx context.Context, n int) error {
			return f.upload(ctx, f.team(n), f.numbered(f.report, f.team(n)))
		}},
		{"page upload", f.pageUpload},
		{"TLS intake", func(ctx context.Context, n int) error {
			return f.send(ctx, f.team(n), http.MethodPost, "/tlsrpt/"+f.team(n).mailbox, "application/tlsrpt+json", f.numbered(f.tls, f.team(n)), nil)
		}},
		{"SMTP", func(ctx context.Context, n int) error {
			// A refusal is one of the ways to stay fair.
			_ = f.mail(ctx, fmt.Sprintf("127.1.%d.1", n), f.team(n), f.numbered(f.report, f.team(n)))
			return ctx.Err()
		}},
		{"verify", func(ctx context.Context, n int) error {
			return f.send(ctx, f.team(n), http.MethodPost, "/api/domains/"+f.team(n).domain+"/verify", "", nil, nil)
		}},
		{"sources", func(ctx context.Context, n int) error {
			// Another range each time, so that no answer is remembered.
			path := fmt.Sprintf("/api/insights/sources?by=address&from=%d-01-01", 1000+f.number.Add(1)%1000)
			return f.send(ctx, f.team(n), http.MethodGet, path, "", nil, nil)
		}},
	}
}

// pageUpload uploads a report with the form of the page.
func (f *field) pageUpload(ctx context.Context, n int) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("files", "report.xml")
	if err != nil {
		return err
	}
	if _, err := part.Write(f.numbered(f.report, f.team(n))); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	return f.send(ctx, f.team(n), http.MethodPost, "/app/reports/upload", form.FormDataContentType(), body.Bytes(), nil)
}

// attacked measures the victim while attackers use an entrance.
func (f *field) attacked(ctx context.Context, e entrance, attackers int) ([]float64, error) {
	attack, stop := context.WithCancel(ctx)
	var attacking sync.WaitGroup
	failed := make(chan error, attackers)
	for n := range attackers {
		attacking.Go(func() {
			lowestPriority()
			for attack.Err() == nil {
				if err := e.strike(attack, n); err != nil && attack.Err() == nil {
					failed <- err
					return
				}
			}
		})
	}
	defer attacking.Wait()
	defer stop()
	select { // until all attackers are at work
	case err := <-failed:
		return nil, err
	case <-time.After(time.Second):
	}
	took, err := f.deliverAll(ctx)
	select {
	case problem := <-failed:
		return nil, errors.Join(err, problem)
	default:
		return took, err
	}
}

// rest waits until the daemon has worked off what attackers left behind.
func (f *field) rest(ctx context.Context) error {
	const span, limit = 300 * time.Millisecond, 5 * time.Minute
	pause := time.NewTicker(span)
	defer pause.Stop()
	for began := time.Now(); time.Since(began) < limit; {
		before, err := harness.ProcessorTime(f.d.process.Process.Pid)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
		after, err := harness.ProcessorTime(f.d.process.Process.Pid)
		if err != nil || after-before < span/10 {
			return err
		}
	}
	return fmt.Errorf("the daemon is still at work after %v", limit)
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
		body := f.numbered([]byte(fairTLS(fairID, 1)), f.victim)
		return f.send(ctx, f.victim, http.MethodPost, "/tlsrpt/"+f.victim.mailbox, "application/tlsrpt+json", body, nil)
	}
	report, err := fairReport(victimRecords)
	if err != nil {
		return err
	}
	report = f.numbered(report, f.victim)
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
		if err := f.send(ctx, f.victim, http.MethodGet, "/api/reports/"+f.victim.domain, "", nil, &sum); err != nil {
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
	s := sample{number: 0, domain: domain, records: records}
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
