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
	"net/smtp"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
)

// entrances are the ways to keep the daemon busy.
var entrances = []string{"API upload", "page upload", "TLS intake", "SMTP", "verify", "senders", "exports", "search", "simulate", "events"}

// attack configures a process of attackers. Attackers represent other machines, and must take
// neither the processors from the daemon nor the Go scheduler from the victim. So they run in a
// separate process that is scheduled only when a processor is idle: even with the highest nice
// value, each of its threads could delay others by a time slice. Exports and searches are the
// exception: their clients mostly read, and the daemon would wait for a client that hardly
// runs.
type attack struct {
	Target    target
	Teams     []fairTeam
	Entrance  string
	Attackers int
	First     int64 // the number of the first report, for its id
}

// target has the addresses of the daemon's listeners.
type target struct{ HTTP, SMTP string }

// fairTeam is a team, and what a client of it needs.
type fairTeam struct {
	Domain, Token, Address, Mailbox string
	Session                         []*http.Cookie
}

// fairID is the placeholder for a report id. All ids have its length.
const fairID = "id-0000000000000000"

// startAttack starts the process and returns once every attacker has struck once.
func startAttack(ctx context.Context, a attack) (stop func() error) {
	command := []string{"chrt", "--idle", "0", os.Args[0], "-attack"}
	if a.Entrance == "exports" || a.Entrance == "search" {
		command = command[3:]
	}
	process := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // this program
	process.Stderr = os.Stderr
	in, out := get(process.StdinPipe()), get(process.StdoutPipe())
	must(process.Start())
	stop = func() error { return errors.Join(in.Close(), process.Wait()) }
	err := json.NewEncoder(in).Encode(a)
	if err == nil {
		_, err = io.ReadFull(out, make([]byte, 1)) // all are at work
	}
	if err != nil {
		must(errors.Join(err, stop()))
	}
	return stop
}

// runAttack reads an attack and runs it until the input ends.
func runAttack(ctx context.Context, in io.Reader, out io.Writer) error {
	var a attack
	orders := json.NewDecoder(in)
	must(orders.Decode(&a))
	report := fairReport(attackRecords)
	s := &strikes{attack: a, report: report, tls: []byte(fairTLS(fairID, attackRecords))}
	s.number.Store(a.First)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun, attackers sync.WaitGroup
	begun.Add(a.Attackers)
	for n := range a.Attackers {
		attackers.Go(func() {
			begin := sync.OnceFunc(begun.Done)
			defer begin()
			if a.Entrance == "exports" { // the first one takes long
				begin()
			}
			for ctx.Err() == nil {
				if err := s.strike(ctx, a.Teams[n%len(a.Teams)], n); err != nil {
					cancel(err) // the first one is kept
				}
				begin()
			}
		})
	}
	begun.Wait()
	get(out.Write([]byte{'!'}))
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the input ends
		cancel(errAttackOver)
	}()
	attackers.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, errAttackOver) {
		return cause
	}
	return nil
}

var errAttackOver = errors.New("the attack is over")

// strikes is an attack with its prepared documents.
type strikes struct {
	attack

	report []byte // with a place for its id
	tls    []byte // the same for a TLS report
	number atomic.Int64
}

// strike uses the entrance once, as the attacker of that number.
func (s *strikes) strike(ctx context.Context, team fairTeam, attacker int) error {
	number := s.number.Add(1)
	switch s.Entrance {
	case "API upload":
		return s.Target.upload(ctx, team, numbered(s.report, number, team))
	case "page upload":
		return s.Target.pageUpload(ctx, team, numbered(s.report, number, team))
	case "TLS intake":
		return s.Target.send(ctx, team, http.MethodPost, "/tlsrpt/"+team.Mailbox, "application/tlsrpt+json", numbered(s.tls, number, team), nil)
	case "SMTP":
		// Refusing a mail is one of the ways to stay fair.
		_ = s.Target.mail(ctx, fmt.Sprintf("127.1.%d.1", attacker), team, numbered(s.report, number, team))
		return nil
	case "verify":
		return s.Target.send(ctx, team, http.MethodPost, "/api/domains/"+team.Domain+"/verify", "", nil, nil)
	case "senders":
		// Another range each time, so that no cached answer is used.
		path := fmt.Sprintf("/api/insights/senders?by=address&from=%d-01-01", 1000+number%1000)
		return s.Target.send(ctx, team, http.MethodGet, path, "", nil, nil)
	case "exports":
		return s.Target.send(ctx, team, http.MethodGet, "/api/insights/records", "", nil, nil)
	case "search":
		return s.Target.send(ctx, team, http.MethodGet, fmt.Sprintf("/api/search?q=%d", number), "", nil, nil)
	case "simulate":
		path := fmt.Sprintf("/api/insights/simulate?domain=%s&from=%d-01-01", team.Domain, 1000+number%1000)
		return s.Target.send(ctx, team, http.MethodGet, path, "", nil, nil)
	case "events": // both answers: at once, and after a wait
		return s.Target.send(ctx, team, http.MethodGet, fmt.Sprintf("/api/events?since=%d&wait=1", number%2), "", nil, nil)
	}
	return fmt.Errorf("there is no entrance %q", s.Entrance)
}

// upload delivers a report by the API.
func (t target) upload(ctx context.Context, team fairTeam, report []byte) error {
	return t.send(ctx, team, http.MethodPost, "/api/reports", "application/octet-stream", report, nil)
}

// pageUpload uploads a report with the form of the web interface.
func (t target) pageUpload(ctx context.Context, team fairTeam, report []byte) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("files", "report.xml")
	if err != nil {
		return err
	}
	if _, err := part.Write(report); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	return t.send(ctx, team, http.MethodPost, "/app/reports/upload", form.FormDataContentType(), body.Bytes(), nil)
}

// mail delivers a report by SMTP, from a loopback address.
func (t target) mail(ctx context.Context, from string, team fairTeam, report []byte) error {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(ctx, "tcp", t.SMTP)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // Quit has ended it, or an error
	client, err := smtp.NewClient(conn, "bench")
	if err != nil {
		return err
	}
	header := "From: dmarc@receiver.example\r\nSubject: Report\r\nMIME-Version: 1.0\r\nContent-Type: text/xml\r\n\r\n"
	if err := sendMail(client, team.Address, append([]byte(header), report...)); err != nil {
		return err
	}
	return client.Quit()
}

// signUp accepts an invitation and returns the session.
func (t target) signUp(ctx context.Context, path, form string) []*http.Cookie {
	r := get(http.NewRequestWithContext(ctx, http.MethodPost, "http://"+t.HTTP+path, strings.NewReader(form)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := client.Do(r)
	must(err)
	must(response.Body.Close())
	session := response.Cookies()
	if len(session) == 0 {
		must(fmt.Errorf("POST %s: got status %d and no session", path, response.StatusCode))
	}
	return session
}

// client follows no redirects.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// send sends a request to the API with the team's token, or to the web interface with its
// session. It accepts any answer except an error of the daemon.
func (t target) send(ctx context.Context, team fairTeam, method, path, media string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+t.HTTP+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", media)
	if into == nil {
		r.Header.Set("Accept-Encoding", "gzip") // as a browser; the content is not read
	}
	if strings.HasPrefix(path, "/api/") {
		r.Header.Set("Authorization", "Bearer "+team.Token)
	} else {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		for _, cookie := range team.Session {
			r.AddCookie(cookie)
		}
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	if into == nil && response.StatusCode == http.StatusOK {
		_, err := io.Copy(io.Discard, response.Body)
		return err
	}
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

// numbered returns a report about the team's domain with a unique id.
func numbered(report []byte, number int64, team fairTeam) []byte {
	id := fmt.Sprintf("id-%016d", number)
	return bytes.ReplaceAll(bytes.Replace(report, []byte(fairID), []byte(id), 1), []byte("fair00.example"), []byte(team.Domain))
}
