package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/api/apitest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/recovered"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

const (
	base      = "http://api.example/api"
	maxUpload = 4 << 20
)

// documented returns the Validator that all answers are compared with. Making one
// takes long.
var documented = sync.OnceValues(func() (*apitest.Validator, error) {
	document, err := api.Document(base)
	if err != nil {
		return nil, err
	}
	return apitest.New(document)
})

// service is an API with a team that calls it.
type service struct {
	t     *testing.T
	api   *api.API
	store *store.Store
	team  *store.Team
	id    dmarcd.TeamID
}

// options are the options of an API, and the acceptor of its uploads.
type options struct {
	api.Options
	Acceptor *intake.Acceptor
}

// newOptions returns the options of an API that takes reports.
func newOptions(t *testing.T, s *store.Store, authenticator api.Authenticator) options {
	t.Helper()
	limits := intake.DefaultLimits()
	limits.Containers.Folder = t.TempDir()
	acceptor := &intake.Acceptor{
		Limits: limits, Encode: shape.EncodeDetail,
		Recovered: func(e *recovered.Error) { t.Error(e) },
	}
	return options{api.Options{
		Service: useCases(s, usecase.Options{Acceptor: acceptor}), Authenticator: authenticator,
		MaxUpload: maxUpload,
		BaseURL:   base, WriteTimeout: time.Minute, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}, acceptor}
}

// useCases returns what the API calls; without a checker, the DNS is empty.
func useCases(s *store.Store, options usecase.Options) *usecase.Service {
	if options.Insight == nil {
		options.Insight = newInsight()
	}
	if options.Checker == nil {
		options.Checker = newChecker(dnstest.New(""))
	}
	options.DNS = dnstest.New("")
	options.Mailboxes, options.Publisher = noMailboxes{}, knownKey{}
	if options.Secrets == nil {
		options.Secrets = plain{}
	}
	return usecase.New(s, options)
}

// noMailboxes rejects every login to a mailbox.
type noMailboxes struct{}

func (noMailboxes) Secret(string, *usecase.OAuth) ([]byte, error) { return []byte("secret"), nil }

func (noMailboxes) Try(context.Context, dmarcd.Mailbox, []byte) ([]byte, error) {
	return nil, &usecase.MailboxError{Field: "host", Message: "The connection failed.", Reason: io.ErrUnexpectedEOF}
}

func (noMailboxes) Explain(dmarcd.Mailbox) string { return "" }

// plain are Secrets that hide nothing.
type plain struct{}

func (plain) Seal(secret []byte, _ string) ([]byte, error) { return secret, nil }

func (plain) Current([]byte) (bool, error)                 { return true, nil }
func (plain) Open(sealed []byte, _ string) ([]byte, error) { return sealed, nil }

func newChecker(resolver dns.Resolver) *dnscheck.Checker {
	return dnscheck.New(dnscheck.Options{Resolver: resolver, Interval: time.Hour, Now: time.Now})
}

// newService returns a service for a new team, named after the test. Each edit changes the options.
func newService(t *testing.T, s *store.Store, edits ...func(*options)) *service {
	t.Helper()
	return newServiceOf(t, s, newTeam(t, s, t.Name()), edits...)
}

// newServiceOf is newService for a team that exists.
func newServiceOf(t *testing.T, s *store.Store, id dmarcd.TeamID, edits ...func(*options)) *service {
	t.Helper()
	options := newOptions(t, s, tokenOf(t, s, id))
	for _, edit := range edits {
		edit(&options)
	}
	handler := musttest.Get(api.New(options.Options))(t)
	return &service{t: t, api: handler, store: s, team: s.Team(id), id: id}
}

func (s *service) add(domains ...string) {
	s.t.Helper()
	if _, err := s.team.AddDomains(s.t.Context(), domains, time.Now().Add(time.Hour)); err != nil {
		s.t.Fatal(err)
	}
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request and validates the response against the OpenAPI document.
func (s *service) send(r *http.Request) answer {
	s.t.Helper()
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer x")
	}
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	got := answer{w.Code, w.Header(), w.Body.Bytes()}
	validator := musttest.Get(documented())(s.t)
	if err := validator.Check(r, got.status, got.header, got.body); err != nil {
		s.t.Errorf("the answer is not as documented: %v\n%s", err, got.body)
	}
	return got
}

func (s *service) request(method, path string, body io.Reader) *http.Request {
	return httptest.NewRequestWithContext(s.t.Context(), method, base+path, body)
}

func (s *service) get(path string) answer {
	s.t.Helper()
	return s.send(s.request(http.MethodGet, path, nil))
}

func (s *service) upload(body []byte) answer {
	s.t.Helper()
	return s.send(s.request(http.MethodPost, "/reports", bytes.NewReader(body)))
}

// stored uploads what must be new and returns the id of its first report.
func (s *service) stored(body []byte) string {
	s.t.Helper()
	got := s.upload(body)
	items := read[receipts](s.t, got, http.StatusCreated).Items
	if len(items) == 0 || items[0].ID == nil {
		s.t.Fatalf("got %s, want a report that was kept", got.body)
	}
	return *items[0].ID
}

// read decodes an answer that must have the status.
func read[T any](t *testing.T, got answer, want int) T {
	t.Helper()
	if got.status != want {
		t.Fatalf("got status %d, want %d: %s", got.status, want, got.body)
	}
	var value T
	if err := json.Unmarshal(got.body, &value); err != nil {
		t.Fatalf("read %s: %v", got.body, err)
	}
	return value
}

type receipts struct {
	Message string
	Items   []struct {
		Kind, Reason, ID, Domain, Organization *string
		ReportID                               *string `json:"report_id"`
		Status, Member                         string
		Records, Messages, Sessions            int
		Quirks                                 []string
	}
}

type page[T any] struct {
	Items []T
	Next  *string
}

// row is a record of an aggregate report for a test.
type row struct {
	from, disposition, dkim string
	count                   int
}

// aggregateXML returns a report that begins on a day.
func aggregateXML(id, domain string, day dmarcd.Day, rows ...row) []byte {
	var b strings.Builder
	begin := int64(day) * 86400
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<feedback><version>1.0</version><report_metadata><org_name>Receiver.example</org_name><email>dmarc@receiver.example</email>
<report_id>%s</report_id><date_range><begin>%d</begin><end>%d</end></date_range></report_metadata>
<policy_published><domain>%s</domain><adkim>r</adkim><aspf>r</aspf><p>none</p><sp>none</sp><pct>100</pct></policy_published>`,
		id, begin, begin+86399, domain)
	for i, r := range rows {
		fmt.Fprintf(&b, `<record><row><source_ip>192.0.2.%d</source_ip><count>%d</count><policy_evaluated>
<disposition>%s</disposition><dkim>%s</dkim><spf>fail</spf></policy_evaluated></row>
<identifiers><envelope_from>%s</envelope_from><header_from>%s</header_from></identifiers><auth_results>
<dkim><domain>%s</domain><selector>s1</selector><result>%s</result></dkim>
<spf><domain>%s</domain><scope>mfrom</scope><result>fail</result></spf></auth_results></record>`,
			i%250+1, r.count, r.disposition, r.dkim, r.from, r.from, r.from, r.dkim, r.from)
	}
	b.WriteString("</feedback>\n")
	return []byte(b.String())
}

// tlsJSON returns a TLS report about a domain.
func tlsJSON(id, domain string) []byte {
	return fmt.Appendf(nil, `{"organization-name":"Receiver","date-range":{"start-datetime":"2026-11-14T00:00:00Z","end-datetime":"2026-11-14T23:59:59Z"},
"contact-info":"tls@receiver.example","report-id":%q,"policies":[{"policy":{"policy-type":"sts","policy-string":["version: STSv1"],
"policy-domain":%q,"mx-host":["mx.example.com"]},"summary":{"total-successful-session-count":7,"total-failure-session-count":1},
"failure-details":[{"result-type":"certificate-expired","failed-session-count":1}]}]}`, id, domain)
}

// genuine is a Verify that finds every mail genuine.
type genuine struct{}

func (genuine) Mail(_ context.Context, mail io.ReadSeeker) dmarcd.Authentication {
	size, _ := mail.Seek(0, io.SeekEnd) // in memory
	return dmarcd.Authentication{Genuine: dmarcd.GenuineYes, From: "receiver.example", DKIM: "pass", Reason: fmt.Sprintf("%d bytes were signed.", size)}
}

func itoa(n int) string { return strconv.Itoa(n) }

func orNull(text *string) string {
	if text == nil {
		return "null"
	}
	return *text
}
