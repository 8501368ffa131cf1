package client_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// withoutMethod are the operations that the client does not have, with the reason.
var withoutMethod = map[string]string{
	"getDocument": "for programs that generate code",
	"getDocs":     "a page for people",
}

// document is what the tests read of the OpenAPI document.
type document struct {
	Paths      map[string]map[string]yaml.Node `yaml:"paths"`
	Components struct {
		Responses map[string]response `yaml:"responses"`
		Examples  map[string]example  `yaml:"examples"`
	} `yaml:"components"`
}

type operation struct {
	ID        string              `yaml:"operationId"`
	Responses map[string]response `yaml:"responses"`
}

type response struct {
	Ref     string `yaml:"$ref"`
	Content map[string]struct {
		Example  any                `yaml:"example"`
		Examples map[string]example `yaml:"examples"`
	} `yaml:"content"`
}

type example struct {
	Ref   string `yaml:"$ref"`
	Value any    `yaml:"value"`
}

// named returns the name at the end of a reference.
func named(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// documented is a server that answers each operation with its example. It notes the operation of the
// last request.
type documented struct {
	t          *testing.T
	document   document
	operations map[string]operation // by method and path
	last       string
}

func newDocumented(t *testing.T) *documented {
	t.Helper()
	d := &documented{t: t, operations: map[string]operation{}}
	musttest.Do(t, yaml.Unmarshal(musttest.Get(os.ReadFile("../internal/api/openapi.yaml"))(t), &d.document))
	for path, methods := range d.document.Paths {
		for method, node := range methods {
			if method == "parameters" {
				continue
			}
			var o operation
			musttest.Do(t, node.Decode(&o))
			d.operations[strings.ToUpper(method)+" "+path] = o
		}
	}
	return d
}

func (d *documented) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := d.find(r.Method, strings.TrimPrefix(r.URL.EscapedPath(), "/api"))
	o := d.operations[key]
	d.last = o.ID
	if o.ID == "" {
		d.t.Errorf("got %s %s, want an operation of the document", r.Method, r.URL)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	for code, answer := range o.Responses {
		if !strings.HasPrefix(code, "2") {
			continue
		}
		if answer.Ref != "" {
			answer = d.document.Components.Responses[named(answer.Ref)]
		}
		body := d.example(answer)
		status := musttest.Get(strconv.Atoi(code))(d.t)
		w.WriteHeader(status)
		_, _ = w.Write(body)
		return
	}
}

// find returns the method and path of the operation of a request; one without parameters wins.
func (d *documented) find(method, path string) string {
	segments := strings.Split(path, "/")
	best := ""
	for key := range d.operations {
		m, template, _ := strings.Cut(key, " ")
		matches := m == method && slices.EqualFunc(segments, strings.Split(template, "/"), func(got, want string) bool {
			return got == want || strings.HasPrefix(want, "{") && got != ""
		})
		if matches && (best == "" || strings.Count(key, "{") < strings.Count(best, "{")) {
			best = key
		}
	}
	return best
}

// example returns a body of a response, without cursors.
func (d *documented) example(r response) []byte {
	for media, content := range r.Content {
		if media == "text/event-stream" || media == "text/plain" { // instead of JSON
			continue
		}
		value := content.Example
		for _, e := range content.Examples {
			if e.Ref != "" {
				e = d.document.Components.Examples[named(e.Ref)]
			}
			value = e.Value
		}
		if text, ok := value.(string); ok || value == nil {
			return []byte(text)
		}
		if page, ok := value.(map[string]any); ok && page["next"] != nil {
			page["next"] = nil
		}
		body, err := json.Marshal(value)
		if err != nil || media == "" {
			d.t.Fatalf("example of %s: %v", media, err)
		}
		return body
	}
	return nil
}

// TestDocument checks that the client has a method for every operation of the document, that it sends
// the right request and reads the answer.
func TestDocument(t *testing.T) {
	t.Parallel()
	d := newDocumented(t)
	server := httptest.NewServer(d)
	defer server.Close()
	c, ctx := client.New(server.URL+"/api", "secret"), t.Context()
	calls := map[string]func() error{
		"getMe":               func() error { return second(c.GetMe(ctx)) },
		"listDomains":         func() error { return all(c.ListDomains(ctx, "shop")) },
		"addDomain":           func() error { return second(c.AddDomain(ctx, "a.example")) },
		"getDomain":           func() error { return second(c.GetDomain(ctx, "a.example")) },
		"deleteDomain":        func() error { return c.DeleteDomain(ctx, "a.example") },
		"changeDomains":       func() error { return second(c.ChangeDomains(ctx, []string{"a.example"}, nil)) },
		"verifyDomain":        func() error { return second(c.VerifyDomain(ctx, "a.example")) },
		"getSetup":            func() error { return second(c.GetSetup(ctx, "a.example")) },
		"selfTest":            func() error { return second(c.SelfTest(ctx, "a.example")) },
		"getTags":             func() error { return second(c.GetTags(ctx, "a.example")) },
		"setTags":             func() error { return second(c.SetTags(ctx, "a.example", nil)) },
		"listManagedRecords":  func() error { return all(c.ListManagedRecords(ctx, "a.example")) },
		"listRecordVersions":  func() error { return all(c.ListRecordVersions(ctx, "a.example", "dmarc")) },
		"publishRecord":       func() error { return second(c.PublishRecord(ctx, "a.example", "dmarc", client.RecordChange{})) },
		"stopRecord":          func() error { return c.StopRecord(ctx, "a.example", "dmarc") },
		"listRecordProposals": func() error { return all(c.ListRecordProposals(ctx, "a.example")) },
		"getRecordTarget":     func() error { return second(c.GetRecordTarget(ctx, "a.example")) },
		"setRecordTarget":     func() error { return second(c.SetRecordTarget(ctx, "a.example", client.NewRecordTarget{})) },
		"removeRecordTarget":  func() error { return c.RemoveRecordTarget(ctx, "a.example") },
		"listTags":            func() error { return all(c.ListTags(ctx)) },
		"search":              func() error { return all(c.Search(ctx, "a", 1)) },
		"setPurpose":          func() error { return second(c.SetPurpose(ctx, "a.example", "business")) },
		"setParked":           func() error { return second(c.SetParked(ctx, "a.example", true)) },
		"acceptForwarding": func() error {
			return second(c.AcceptForwarding(ctx, "a.example", new(int64(1))))
		},
		"listChecks":         func() error { return all(c.ListChecks(ctx, "a.example", client.CheckFilter{})) },
		"getLatestCheck":     func() error { return second(c.GetLatestCheck(ctx, "a.example")) },
		"listChanges":        func() error { return all(c.ListChanges(ctx, client.ChangeFilter{})) },
		"listDomainPostures": func() error { return all(c.ListDomainPostures(ctx, client.PostureFilter{})) },
		"listSenders":        func() error { return all(c.ListSenders(ctx, client.SenderFilter{})) },
		"listDaily":          func() error { return all(c.ListDaily(ctx, client.DailyFilter{})) },
		"simulatePolicy":     func() error { return second(c.SimulatePolicy(ctx, "a.example", client.PolicyChange{P: "reject"})) },
		"listAdvice":         func() error { return all(c.ListAdvice(ctx, client.AdviceFilter{})) },
		"answerQuestion":     func() error { return second(c.AnswerQuestion(ctx, "a.example", "key", "yours")) },
		"setSenderClass":     func() error { return second(c.SetSenderClass(ctx, "a.example", "AS64496:192.0.2.0/24", nil)) },
		"listTeamSenders":    func() error { return all(c.ListTeamSenders(ctx)) },
		"setTeamSender":      func() error { return second(c.SetTeamSender(ctx, client.TeamSender{Key: "shop"})) },
		"removeTeamSender":   func() error { return c.RemoveTeamSender(ctx, "shop") },
		"getTeamSummary":     func() error { return second(c.GetTeamSummary(ctx, client.Period{})) },
		"getDomainSummary":   func() error { return second(c.GetDomainSummary(ctx, "a.example", client.Period{})) },
		"uploadReport":       func() error { return second(c.UploadReport(ctx, strings.NewReader("x"))) },
		"listReports":        func() error { return all(c.ListReports(ctx, client.ReportFilter{})) },
		"getReport":          func() error { return second(c.GetReport(ctx, "r")) },
		"setReportCounted":   func() error { return second(c.SetReportCounted(ctx, "r", true)) },
		"setReportsCounted":  func() error { return second(c.SetReportsCounted(ctx, client.Selection{})) },
		"deleteReport":       func() error { return c.DeleteReport(ctx, "r") },
		"listRecords":        func() error { return all(c.ListRecords(ctx, "r")) },
		"getReportOriginal":  func() error { return closed(c.GetReportOriginal(ctx, "r")) },
		"listRejected":       func() error { return all(c.ListRejected(ctx)) },
		"getRejectedOriginal": func() error {
			return closed(c.GetRejectedOriginal(ctx, "r"))
		},
		"retryRejected":     func() error { return second(c.RetryRejected(ctx, "r")) },
		"deleteRejected":    func() error { return c.DeleteRejected(ctx, "r") },
		"exportRecords":     func() error { return all(c.ExportRecords(ctx, client.RecordFilter{All: true})) },
		"listEvents":        func() error { return all(c.ListEvents(ctx, client.EventFilter{})) },
		"listAlerts":        func() error { return all(c.ListAlerts(ctx, client.AlertFilter{})) },
		"acknowledgeAlert":  func() error { return second(c.AcknowledgeAlert(ctx, "a")) },
		"acknowledgeAlerts": func() error { return second(c.AcknowledgeAlerts(ctx, client.Through{Seq: 1})) },
		"testAlert":         func() error { return second(c.TestAlert(ctx)) },
		"getAlertRules":     func() error { return second(c.GetAlertRules(ctx)) },
		"setAlertRules":     func() error { return second(c.SetAlertRules(ctx, client.AlertRules{})) },
		"listWebhooks":      func() error { return all(c.ListWebhooks(ctx)) },
		"addWebhook":        func() error { return second(c.AddWebhook(ctx, client.NewWebhook{})) },
		"updateWebhook":     func() error { return second(c.UpdateWebhook(ctx, "w", client.WebhookChange{})) },
		"deleteWebhook":     func() error { return c.DeleteWebhook(ctx, "w") },
		"testWebhook":       func() error { return second(c.TestWebhook(ctx, "w")) },
		"rotateWebhook":     func() error { return second(c.RotateWebhook(ctx, "w")) },
		"listDeliveries":    func() error { return all(c.ListDeliveries(ctx, "w")) },
		"retryDelivery":     func() error { return second(c.RetryDelivery(ctx, "w", "d")) },
		"listTokens":        func() error { return all(c.ListTokens(ctx)) },
		"createToken":       func() error { return second(c.CreateToken(ctx, client.NewToken{Scope: "read"})) },
		"revokeToken":       func() error { return c.RevokeToken(ctx, "t") },
		"listMembers":       func() error { return all(c.ListMembers(ctx)) },
		"setRole":           func() error { return second(c.SetRole(ctx, "u", "editor")) },
		"removeMember":      func() error { return c.RemoveMember(ctx, "u") },
		"listInvitations":   func() error { return all(c.ListInvitations(ctx)) },
		"inviteMember":      func() error { return second(c.InviteMember(ctx, "a@a.example", "viewer")) },
		"withdrawInvitation": func() error {
			return c.WithdrawInvitation(ctx, "a@a.example")
		},
		"listMailboxes": func() error { return all(c.ListMailboxes(ctx)) },
		"addMailbox":    func() error { return second(c.AddMailbox(ctx, client.NewMailbox{})) },
		"removeMailbox": func() error { return c.RemoveMailbox(ctx, "m") },
		"listAudit":     func() error { return all(c.ListAudit(ctx, client.AuditFilter{})) },
		"getRetention":  func() error { return second(c.GetRetention(ctx)) },
		"setRetention":  func() error { return second(c.SetRetention(ctx, client.Retention{})) },
	}
	for _, o := range d.operations {
		call, ok := calls[o.ID]
		if ok == (withoutMethod[o.ID] != "") {
			t.Errorf("%s: got a call: %v, want a method with that name and a call of it here, or a reason in withoutMethod", o.ID, ok)
		}
		if !ok {
			continue
		}
		if err := call(); err != nil || d.last != o.ID {
			t.Errorf("%s: got a call of %s and %v", o.ID, d.last, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func all[T any](items iter.Seq2[T, error]) error { return second(client.Collect(items)) }

func closed(content io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	return content.Close()
}

// background is for examples.
func background() context.Context { return context.Background() }
