package web_test

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/shape"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const (
	sampleDomain   = "example.com"
	samplePassword = "correct horse battery"
	// hostile is text that an outsider may put into a report or record.
	hostile = `"><script>alert('x')</script><img src=x onerror=alert(1)> javascript:alert(1)`
	formula = `=HYPERLINK("https://evil.example/","click")`
)

// The users of the sample. All except zoe are members of the team with data; the operator
// is also in the empty team.
const (
	viewer   = "viewer@example.com"
	editor   = "editor@example.com"
	owner    = "owner@example.com"
	operator = "operator@example.com"
	// elsewhere has selected the empty team.
	elsewhere = "elsewhere@example.com"
	zoe       = "zoe@example.com"
)

var now = time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)

// sample is the test data and its credentials.
type sample struct {
	file            string // path of the database
	team, emptyTeam dmarcd.TeamID

	aggregate, odd, failure, tls dmarcd.ReportID
	rejected                     dmarcd.RejectedID
	token, mailbox, member       string // ids
	webhook, chat, delivery      string
	alert                        string // number of an alert
	reportAddress                string
	// sessions are session secrets by email address; invitation is the secret of a link
	// for joining@example.com.
	sessions   map[string]string
	invitation string
}

// site is the web interface with its own service.
type site struct {
	sample
	store   *store.Store
	service *service.Service
	zone    *zones
	pages   *web.Web
	clock   time.Time
	mail    mailbag
}

// mailbag stores the links in sent mail, by recipient.
type mailbag struct {
	mu    sync.Mutex
	links map[string]string
}

func (m *mailbag) retained(to, link string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.links == nil {
		m.links = map[string]string{}
	}
	m.links[to] = link
	return nil
}

func (m *mailbag) SendInvitation(_ context.Context, to, _, link string) error {
	return m.retained(to, link)
}

func (m *mailbag) SendConfirmation(_ context.Context, _ string, w dmarcd.Webhook, link string) error {
	return m.retained(w.Address(), link)
}

func (m *mailbag) SendOnce(_ context.Context, to, _ string, content mail.Content) error {
	return m.retained(to, content.Action.URL)
}

func (m *mailbag) SendDisabled(_ context.Context, to, _ string, _ dmarcd.Webhook, link string) error {
	return m.retained(to, link)
}

// zones is a replaceable DNS.
type zones struct {
	mu   sync.Mutex
	zone *dnstest.Zone
	// examined is the number of full checks: each asks for the TLS-RPT record once.
	examined int
}

// Resolve implements dns.Resolver.
func (z *zones) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	z.mu.Lock()
	defer z.mu.Unlock()
	if strings.HasPrefix(q.Name, "_smtp._tls.") {
		z.examined++
	}
	return z.zone.Resolve(ctx, q)
}

// Deliver implements service.Deliveries.
func (s *site) Deliver(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
	result := dmarcd.DeliveryResult{At: s.clock, Status: 500, Took: time.Second, Problem: "The endpoint answered with status 500."}
	return result, s.store.Team(c.Team).SaveDelivery(ctx, c, result, time.Time{}, "", time.Hour)
}

// plainly replaces external systems: secrets are not encrypted, every login succeeds, problems are
// rejected logins, loopback addresses are refused, and no self-test arrives.
type plainly struct{}

func (plainly) Seal(plain []byte, _ string) ([]byte, error)  { return plain, nil }
func (plainly) Current([]byte) (bool, error)                 { return true, nil }
func (plainly) Open(sealed []byte, _ string) ([]byte, error) { return sealed, nil }
func (plainly) Secret(password string, oauth *service.OAuth) ([]byte, error) {
	if oauth != nil && oauth.TokenURL == "" {
		return nil, &dmarcd.InvalidError{Field: "token_url", Message: "Enter it."}
	}
	return []byte(password), nil
}
func (plainly) Explain(dmarcd.Mailbox) string   { return "The sign-in failed." }
func (plainly) Permits(address netip.Addr) bool { return !address.IsLoopback() }

func (plainly) Try(_ context.Context, _ dmarcd.Mailbox, secret []byte) ([]byte, error) {
	return secret, nil
}

func (plainly) Send(_ context.Context, address, _, _ string) ([]dmarcd.SelfTestStage, bool) {
	return []dmarcd.SelfTestStage{{Name: dmarcd.StageMX, Detail: address + " cannot be reached."}}, false
}

// noNames has no reverse names.
type noNames struct{}

func (noNames) Known(context.Context, dmarcd.TeamID, []netip.Addr) (map[netip.Addr]string, error) {
	return nil, nil
}

// openSite opens the web interface with a database until the test ends. The changes are to the
// options of the service.
func openSite(t *testing.T, db storetest.DB, changes ...func(*service.Options)) *site {
	t.Helper()
	s := &site{clock: now, zone: &zones{zone: dnstest.New("")}}
	clock := func() time.Time { return s.clock }
	checker := dnscheck.New(dnscheck.Options{Resolver: s.zone, ReportDomain: "reports.example", Interval: time.Hour, Now: clock})
	limits := intake.DefaultLimits()
	limits.Containers.Folder = t.TempDir()
	budget := memory.NewBudget(256 << 20)
	options := service.Options{
		DNS:        s.zone,
		Checker:    checker,
		Acceptor:   &intake.Acceptor{Limits: limits, Encode: shape.EncodeDetail, Recovered: func(e *recovered.Error) { t.Error(e) }},
		Insight:    insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), noNames{}, budget),
		Memory:     budget,
		Secrets:    plainly{},
		Mailboxes:  plainly{},
		Publisher:  nameServer{},
		Outbound:   plainly{},
		SelfTests:  plainly{},
		Deliveries: s,
		Mail:       &s.mail,
		Sample: service.Sample{Domains: []string{"harbour.example"}, Load: func(ctx context.Context, team *store.Team) error {
			_, err := team.Receive(ctx, []*dmarcd.Delivery{storetest.Delivery(
				storetest.Aggregate("1", "harbour.example", dmarcd.DayOf(now)-1, storetest.Passed("harbour.example", 7)))})
			return err
		}},
		Retention: store.Retention{Originals: 90 * 24 * time.Hour, Records: 36 * time.Hour},
		BaseURL:   "https://dmarc.example/api", ReportDomain: "reports.example", ReceivesMail: true, Now: clock,
	}
	for _, change := range changes {
		change(&options)
	}
	s.store = db.Open(t, store.Options{Now: clock, DomainProof: options.DomainProof})
	s.service = service.New(s.store, options)
	var err error
	s.pages, err = web.New(web.Options{
		Service: s.service, ReportDomain: "reports.example", Zone: "dns.example.net", MinPassword: auth.MinPassword, APIDocs: "/api/docs",
		Attributions: []ui.Link{{Text: "IP geolocation by an example", Href: "https://data.example/"}},
		MaxUpload:    1 << 20, Now: clock, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	musttest.Do(t, err)
	return s
}

// The first test that needs the sample creates it.
var (
	sampleFolder string
	sampleOnce   sync.Once
	theSample    sample
)

func TestMain(m *testing.M) {
	var err error
	if sampleFolder, err = os.MkdirTemp("", "dmarcd-web-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(sampleFolder)
	os.Exit(code)
}

// newSite opens the web interface with a copy of the sample; see openSite.
func newSite(t *testing.T, changes ...func(*service.Options)) *site {
	t.Helper()
	sampleOnce.Do(func() {
		t.Run("make the sample", func(t *testing.T) { theSample = makeSample(t, filepath.Join(sampleFolder, "dmarcd.db")) })
	})
	content, err := os.ReadFile(theSample.file)
	if err != nil {
		t.Fatal("there is no sample: ", err)
	}
	db := storetest.SQLite(t)
	musttest.Do(t, os.WriteFile(db.DSN, content, 0o600))
	s := openSite(t, db, changes...)
	s.sample = theSample
	s.sessions = maps.Clone(theSample.sessions)
	s.clock = now.Add(time.Second) // ids depend on the time; those of the sample are taken
	return s
}

func (s *site) get(user, path string) *httptest.ResponseRecorder {
	return s.send(user, httptest.NewRequest(http.MethodGet, path, http.NoBody))
}

// body returns a page as a user sees it.
func (s *site) body(t testing.TB, user, path string) string {
	t.Helper()
	w := s.get(user, path)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: got %d, want a page", path, w.Code)
	}
	return w.Body.String()
}

func (s *site) post(user, path string, form url.Values) *httptest.ResponseRecorder {
	return s.send(user, postForm(path, form))
}

func postForm(path string, form url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

// send sends a request as a user; "" means no session.
func (s *site) send(user string, r *http.Request) *httptest.ResponseRecorder {
	if user != "" {
		secret, ok := s.sessions[user]
		if !ok {
			panic("no session of " + user)
		}
		r.AddCookie(&http.Cookie{Name: "dmarcd_session", Value: secret})
	}
	w := httptest.NewRecorder()
	s.pages.ServeHTTP(w, r)
	return w
}

// audit returns the number of audit entries.
func (s *site) audit(t testing.TB) int {
	t.Helper()
	entries := musttest.Get(s.store.Audit(t.Context(), store.AuditFilter{}, store.Cursor{}, 1000))(t)
	return len(entries)
}
