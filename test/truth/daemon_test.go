package truth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/test/daemon"
	"github.com/dmarcd/dmarcd/test/truth"
)

const (
	// perTeam is how many domains a team has. Names of at most 2,000 addresses of a team wait to
	// be looked up.
	perTeam = 25
	// limit is how long the daemon may take for a request, and for the names of all hosts.
	limit = 20 * time.Minute
)

// world is a daemon with planted domains.
type world struct {
	t       *testing.T
	in      daemon.Installation
	d       *daemon.Daemon
	dns     *resolvertest.Server
	client  *http.Client
	domains []*planted
}

// planted is a domain, and what the daemon said about it.
type planted struct {
	*truth.Domain
	token string
	// marked is what is wrong with the marks of the user, "" if they were taken.
	marked     string
	simulation simulation
	// advice is that before the answer, and after that which follows from it.
	advice, after advice
	senders       []sender
}

// simulation is the answer of /insights/simulate. Members that are missing are nil.
type simulation struct {
	LegitimateMessages *int `json:"legitimate_messages"`
	LegitimateAffected *int `json:"legitimate_affected"`
	ForwarderMessages  *int `json:"forwarder_messages"`
	ForwarderAffected  *int `json:"forwarder_affected"`
	UnknownMessages    *int `json:"unknown_messages"`
	UnknownAffected    *int `json:"unknown_affected"`
	SpoofingMessages   *int `json:"spoofing_messages"`
	SpoofingStopped    *int `json:"spoofing_stopped"`
	Senders            []struct {
		Key, Name, Class   string
		Messages, Affected int
	}
}

// advice is an item of /insights/advice.
type advice struct {
	Domain, Stage string
	NextAction    *struct {
		ID, Title, Reason string
		Record            *struct{ Value string }
		Question          *struct{ Key, Name, Text string }
	} `json:"next_action"`
}

// sender is an item of /insights/senders.
type sender struct{ Key, Class string }

// newWorld starts a daemon with the domains and the reports about them, and reads its conclusions.
func newWorld(t *testing.T, domains []*truth.Domain) *world {
	t.Helper()
	folder := t.TempDir()
	networks := musttest.Get(os.Create(filepath.Join(folder, "networks.mmdb")))(t)
	musttest.Do(t, truth.WriteNetworks(networks))
	musttest.Do(t, networks.Close())
	var zone strings.Builder
	zone.WriteString(truth.SharedZone())
	w := &world{t: t, client: &http.Client{Timeout: limit}}
	for _, d := range domains {
		zone.WriteString(d.Zone())
		w.domains = append(w.domains, &planted{Domain: d})
	}
	w.dns = resolvertest.Start(t, zone.String())
	w.in = daemon.Installation{
		Program: musttest.Get(daemon.Build(folder))(t),
		Settings: []string{
			"DMARCD_DATABASE=" + filepath.Join(folder, "truth.db"), "DMARCD_DATA=" + filepath.Join(folder, "data"), "DMARCD_LISTEN=127.0.0.1:0",
			"DMARCD_DNS=" + w.dns.Addr(), "DMARCD_RATE_LIMIT=0",
		},
	}
	w.serve(w.upload, unscheduled) // so that checks know the selectors in the reports
	w.serve(w.awaitDNS)
	w.serve(w.conclude, unscheduled) // without answers from before the names were known
	return w
}

// unscheduled has the daemon check no domains.
const unscheduled = "DMARCD_SCHEDULE_RATE=0"

// serve runs the daemon during a step.
func (w *world) serve(step func(), settings ...string) {
	w.t.Helper()
	w.d = w.in.With(settings...).Serve(w.t)
	step()
	w.d.Stop()
}

// upload adds the domains, and uploads the reports about them.
func (w *world) upload() {
	w.t.Helper()
	now := time.Now()
	for first := 0; first < len(w.domains); first += perTeam {
		team := fmt.Sprintf("team-%d", first/perTeam)
		w.in.Do(w.t, "team", "create", team, "--api")
		token := w.in.Do(w.t, "token", "create", "--team", team)
		for _, p := range w.domains[first:min(first+perTeam, len(w.domains))] {
			p.token = token
			w.must(p, http.StatusCreated, http.MethodPost, "/domains", fmt.Sprintf(`{"domain": %q}`, p.Name))
			var files []string
			reports := p.Reports(now)
			for _, name := range slices.Sorted(maps.Keys(reports)) {
				files = append(files, name, reports[name])
			}
			w.must(p, http.StatusCreated, http.MethodPost, "/reports", string(packtest.Zip(files...)))
		}
	}
}

// awaitDNS waits until the daemon has checked the domains and looked up the names of the hosts,
// which it does in the background.
func (w *world) awaitDNS() {
	w.t.Helper()
	for _, p := range w.domains {
		daemon.Eventually(w.t, limit, p.Name+" is checked", func() bool {
			status, _ := w.send(p, http.MethodGet, "/domains/"+p.Name+"/checks/latest", "")
			return status == http.StatusOK
		})
	}
	missing := func(addr netip.Addr) bool { return w.dns.Asked(truth.Pointer(addr), dns.PTR) == 0 }
	daemon.Eventually(w.t, limit, "the names of all hosts are looked up", func() bool {
		complete := true
		for _, p := range w.domains {
			if slices.ContainsFunc(p.Hosts(), missing) {
				complete = false
				w.must(p, http.StatusOK, http.MethodGet, "/insights/simulate?domain="+p.Name, "")
			}
		}
		return complete
	})
}

// conclude tells the daemon what users know, and reads what it concludes.
func (w *world) conclude() {
	w.t.Helper()
	for _, p := range w.domains {
		w.mark(p)
		w.read(p)
	}
}

// mark tells the daemon what a user knows.
func (w *world) mark(p *planted) {
	w.t.Helper()
	var status int
	switch {
	case p.Parked:
		status, _ = w.send(p, http.MethodPut, "/domains/"+p.Name+"/parked", `{"parked": true}`)
	case p.Accepted > 0:
		status, _ = w.send(p, http.MethodPut, "/domains/"+p.Name+"/forwarding", fmt.Sprintf(`{"accepted": %d}`, p.Accepted))
	default:
		return
	}
	if status != http.StatusOK {
		p.marked = fmt.Sprintf("the mark of the user was answered with status %d", status)
	}
}

// read reads what the daemon concludes.
func (w *world) read(p *planted) {
	w.t.Helper()
	get := func(path string, into any) {
		w.t.Helper()
		body := w.must(p, http.StatusOK, http.MethodGet, path, "")
		if err := json.Unmarshal(body, into); err != nil {
			w.t.Fatalf("%s: %v in %s", path, err, body)
		}
	}
	get("/insights/simulate?p=reject&domain="+p.Name, &p.simulation)
	advise := func(into *advice) {
		w.t.Helper()
		var page struct{ Items []advice }
		get("/insights/advice?domain="+p.Name, &page)
		if len(page.Items) != 1 {
			w.t.Fatalf("%s: got %d items of advice want 1", p.Name, len(page.Items))
		}
		*into = page.Items[0]
	}
	advise(&p.advice)
	var senders struct{ Items []sender }
	since := time.Now().UTC().AddDate(0, 0, -29).Format(time.DateOnly)
	get("/insights/senders?by=sender&limit=1000&domain="+p.Name+"&from="+since, &senders)
	p.senders = senders.Items
	if p.Answer != "" {
		path := "/domains/" + p.Name + "/questions/" + url.PathEscape(p.Action.Sender)
		if status, body := w.send(p, http.MethodPut, path, fmt.Sprintf(`{"answer": %q}`, p.Answer)); status != http.StatusOK {
			p.marked = fmt.Sprintf("the answer %s to %s was answered with status %d: %s", p.Answer, p.Action.Sender, status, body)
		}
		advise(&p.after)
	}
}

// must sends a request that must have a status, and returns the body of the answer.
func (w *world) must(p *planted, want int, method, path, body string) []byte {
	w.t.Helper()
	status, answer := w.send(p, method, path, body)
	if status != want {
		w.t.Fatalf("%s %s: got status %d want %d: %s", method, path, status, want, answer)
	}
	return answer
}

func (w *world) send(p *planted, method, path, body string) (status int, answer []byte) {
	w.t.Helper()
	request := musttest.Get(http.NewRequestWithContext(context.Background(), method, "http://"+w.d.HTTP+"/api"+path, bytes.NewBufferString(body)))(w.t)
	request.Header.Set("Authorization", "Bearer "+p.token)
	if strings.HasPrefix(body, "{") {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := w.client.Do(request)
	musttest.Do(w.t, err)
	defer func() { _ = response.Body.Close() }() // read to the end
	return response.StatusCode, musttest.Get(io.ReadAll(response.Body))(w.t)
}
