package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// exported is a span as a collector sees it.
type exported struct {
	TraceID, SpanID, ParentSpanID, Name string
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
}

// traces is a collector of OTLP.
type traces struct {
	mu    sync.Mutex
	spans []exported
	text  strings.Builder
}

func (c *traces) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing, the test misses
	var document struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []exported }
		}
	}
	_ = json.Unmarshal(body, &document) // likewise
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(body)
	for _, resource := range document.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// named returns the spans of a name.
func (c *traces) named(name string) (found []exported) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func TestTraces(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	collector := &traces{}
	receiver := httptest.NewServer(collector)
	defer receiver.Close()
	free := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := free.Addr().String()
	musttest.Do(t, free.Close())
	dns := resolvertest.Start(t, `_dmarc.secret.example. TXT "v=DMARC1; p=reject"`)
	db := storetest.SQLite(t)
	d := start(t, db, "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL, "DMARCD_DNS="+dns.Addr(), "DMARCD_SMTP_LISTEN="+address, "DMARCD_REPORT_DOMAIN=report.example")

	const client = "0af7651916cd43dd8448eb211c80319c"
	request := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/domains", strings.NewReader(`{"domain": "secret.example"}`)))(t)
	request.Header.Set("Authorization", "Bearer "+tokenForm.FindString(d.out))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Traceparent", "00-"+client+"-b7ad6b7169203331-01")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	musttest.Do(t, err)
	answer, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it is read
	if err != nil || response.StatusCode/100 != 2 {
		t.Fatalf("got %d %s, %v", response.StatusCode, answer, err)
	}
	var mailbox string
	musttest.Do(t, db.SQL(t).QueryRowContext(t.Context(), `SELECT mailbox FROM addresses`).Scan(&mailbox))
	mail := "From: a@secret.example\r\nSubject: secret\r\n\r\nno report\r\n"
	musttest.Do(t, smtp.SendMail(address, nil, "a@secret.example", []string{mailbox + "@report.example"}, []byte(mail)))
	if status, _ := get(t, d.url+"/domains?limit=secret", tokenForm.FindString(d.out)); status == 0 {
		t.Error("no answer")
	}
	for deadline := time.Now().Add(time.Minute); len(collector.named("store reports")) == 0 && time.Now().Before(deadline); {
		<-time.After(50 * time.Millisecond)
	}
	musttest.Do(t, d.stop())

	for _, name := range []string{"POST /domains", "GET /domains", "DNS check", "store transaction", "SMTP transaction", "spool item", "spool item: verify", "parse reports", "store reports"} {
		if len(collector.named(name)) == 0 {
			t.Errorf("no span %q", name)
		}
	}
	below := make(map[string]string) // names by trace and parent
	for _, s := range collector.spans {
		below[s.TraceID+s.ParentSpanID] += s.Name + " "
	}
	added := collector.named("POST /domains")[0]
	if added.TraceID != client || !strings.Contains(below[client+added.SpanID], "store transaction") || !strings.Contains(below[client+added.SpanID], "DNS check") {
		t.Errorf("got %+v, and below it %q", added, below[client+added.SpanID])
	}
	if text := fmt.Sprint(added.Attributes); !strings.Contains(text, "{http.response.status_code { 201}}") && !strings.Contains(text, "{http.response.status_code { 200}}") || !strings.Contains(text, "{dmarcd.team {team_") {
		t.Errorf("got the attributes %s", text)
	}
	if text := collector.text.String(); strings.Contains(text, "secret") || strings.Contains(text, mailbox) {
		t.Errorf("spans hold data of a team: %s", text)
	}
}
