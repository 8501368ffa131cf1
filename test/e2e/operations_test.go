package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/api/apitest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// validating compares every answer that a client gets with the document.
type validating struct {
	t         *testing.T
	validator *apitest.Validator
}

func (v validating) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it is read to the end
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if err := v.validator.Check(r, answer.StatusCode, answer.Header, body); err != nil {
		v.t.Errorf("%s %s: %d %s\n%v", r.Method, r.URL, answer.StatusCode, body, err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// unsuccessful are the operations that cannot succeed on the server of the test: it receives no mail, has
// no mailbox, no DNS server of a domain and one user less than it needs, and what was rejected is so again.
var unsuccessful = map[string]int{
	"selfTest": http.StatusUnprocessableEntity, "retryRejected": http.StatusUnprocessableEntity,
	"addMailbox": http.StatusUnprocessableEntity, "removeMailbox": http.StatusNotFound,
	"setRole": http.StatusNotFound, "removeMember": http.StatusNotFound,
	"setRecordTarget": http.StatusUnprocessableEntity, "getRecordTarget": http.StatusNotFound, "removeRecordTarget": http.StatusNotFound,
}

// TestClientCallsEveryOperation calls every operation with package client, as a Go program does, and
// compares every answer with the document.
func TestClientCallsEveryOperation(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve(append(zoneSettings, reporting)...)
		validator := musttest.Get(apitest.New(s.send(request{method: http.MethodGet, path: "/openapi.json"}).body))(t)
		documented := validator.Missing()
		c, ctx := client.New(s.baseURL, in.newToken("default", "--scope", "admin")), t.Context()
		c.HTTP = &http.Client{Transport: validating{t, validator}}
		publisher := client.New(s.baseURL, in.newToken("default", "--scope", "publish"))
		publisher.HTTP = c.HTTP
		called := map[string]bool{}
		do := func(operation string, err error) {
			t.Helper()
			called[operation] = true
			var answer *client.Error
			if status, ok := unsuccessful[operation]; ok && errors.As(err, &answer) && answer.Status == status {
				return
			}
			if err != nil {
				t.Errorf("%s: %v", operation, err)
			}
		}
		const domain = "example.com"
		_, err := c.AddDomain(ctx, domain)
		do("addDomain", err)
		s.firstCheck(domain)
		question := s.ask(domain)
		report, rejected := s.someReport()
		webhook, delivery := s.addHook()
		reporter := "Reporter Inc."

		do("getMe", last(c.GetMe(ctx)))
		do("listDomains", every(c.ListDomains(ctx, "")))
		do("getDomain", last(c.GetDomain(ctx, domain)))
		do("changeDomains", last(c.ChangeDomains(ctx, []string{"a.example", "b.example"}, nil)))
		do("verifyDomain", last(c.VerifyDomain(ctx, domain)))
		do("getSetup", last(c.GetSetup(ctx, domain)))
		do("selfTest", last(c.SelfTest(ctx, domain)))
		do("setTags", last(c.SetTags(ctx, domain, []string{"shop"})))
		do("getTags", last(c.GetTags(ctx, domain)))
		do("publishRecord", last(publisher.PublishRecord(ctx, domain, "dmarc", client.RecordChange{Record: new("v=DMARC1; p=none")})))
		do("listManagedRecords", every(c.ListManagedRecords(ctx, domain)))
		do("listRecordVersions", every(c.ListRecordVersions(ctx, domain, "dmarc")))
		do("listRecordProposals", every(c.ListRecordProposals(ctx, domain)))
		do("setRecordTarget", last(publisher.SetRecordTarget(ctx, domain, client.NewRecordTarget{Kind: "rfc2136", Server: "127.0.0.1:1", Key: "key:c2VjcmV0"})))
		do("getRecordTarget", last(c.GetRecordTarget(ctx, domain)))
		do("removeRecordTarget", publisher.RemoveRecordTarget(ctx, domain))
		do("stopRecord", publisher.StopRecord(ctx, domain, "dmarc"))
		do("listTags", every(c.ListTags(ctx)))
		do("search", every(c.Search(ctx, "example", 0)))
		do("setPurpose", last(c.SetPurpose(ctx, domain, "business")))
		do("setParked", last(c.SetParked(ctx, domain, false)))
		do("acceptForwarding", last(c.AcceptForwarding(ctx, domain, new(int64(290)))))
		do("listChecks", every(c.ListChecks(ctx, domain, client.CheckFilter{})))
		do("getLatestCheck", last(c.GetLatestCheck(ctx, domain)))
		do("listChanges", every(c.ListChanges(ctx, client.ChangeFilter{})))
		do("listDomainPostures", every(c.ListDomainPostures(ctx, client.PostureFilter{PageSize: 1})))
		do("listSenders", every(c.ListSenders(ctx, client.SenderFilter{Domain: domain})))
		do("listDaily", every(c.ListDaily(ctx, client.DailyFilter{})))
		do("simulatePolicy", last(c.SimulatePolicy(ctx, domain, client.PolicyChange{P: "reject"})))
		do("listAdvice", every(c.ListAdvice(ctx, client.AdviceFilter{Domain: domain})))
		do("answerQuestion", last(c.AnswerQuestion(ctx, domain, question, "yours")))
		do("setSenderClass", last(c.SetSenderClass(ctx, domain, "as64500", new("yours"))))
		do("setTeamSender", last(c.SetTeamSender(ctx, client.TeamSender{Key: "our-crm", Name: "Our CRM", Networks: []string{"198.51.100.0/24"}})))
		do("listTeamSenders", every(c.ListTeamSenders(ctx)))
		do("removeTeamSender", c.RemoveTeamSender(ctx, "our-crm"))
		do("uploadReport", last(c.UploadReport(ctx, strings.NewReader(about(domain, "uploaded", 1, 1).xml()))))
		do("getTeamSummary", last(c.GetTeamSummary(ctx, client.Period{})))
		do("getDomainSummary", last(c.GetDomainSummary(ctx, domain, client.Period{})))
		do("listReports", every(c.ListReports(ctx, client.ReportFilter{PageSize: 5})))
		do("getReport", last(c.GetReport(ctx, report)))
		do("setReportCounted", last(c.SetReportCounted(ctx, report, false)))
		do("setReportsCounted", last(c.SetReportsCounted(ctx, client.Selection{Reporter: &reporter, Counted: true})))
		do("listRecords", every(c.ListRecords(ctx, report)))
		do("getReportOriginal", closing(c.GetReportOriginal(ctx, report)))
		do("exportRecords", every(c.ExportRecords(ctx, client.RecordFilter{Domain: domain})))
		do("deleteReport", c.DeleteReport(ctx, report))
		do("listRejected", every(c.ListRejected(ctx)))
		do("getRejectedOriginal", closing(c.GetRejectedOriginal(ctx, rejected)))
		do("retryRejected", last(c.RetryRejected(ctx, rejected)))
		do("deleteRejected", c.DeleteRejected(ctx, rejected))
		alert, err := c.TestAlert(ctx)
		do("testAlert", err)
		do("listEvents", every(c.ListEvents(ctx, client.EventFilter{})))
		do("listAlerts", every(c.ListAlerts(ctx, client.AlertFilter{Domain: domain, PageSize: 1})))
		do("acknowledgeAlert", last(c.AcknowledgeAlert(ctx, strconv.FormatInt(alert.Seq, 10))))
		do("acknowledgeAlerts", last(c.AcknowledgeAlerts(ctx, client.Through{Seq: alert.Seq})))
		rules, err := c.GetAlertRules(ctx)
		do("getAlertRules", err)
		do("setAlertRules", last(c.SetAlertRules(ctx, rules)))
		do("addWebhook", last(c.AddWebhook(ctx, client.NewWebhook{URL: "https://hooks.example/other"})))
		do("listWebhooks", every(c.ListWebhooks(ctx)))
		do("updateWebhook", last(c.UpdateWebhook(ctx, webhook, client.WebhookChange{Enabled: new(true)})))
		do("testWebhook", last(c.TestWebhook(ctx, webhook)))
		do("rotateWebhook", last(c.RotateWebhook(ctx, webhook)))
		do("listDeliveries", every(c.ListDeliveries(ctx, webhook)))
		do("retryDelivery", last(c.RetryDelivery(ctx, webhook, delivery)))
		do("deleteWebhook", c.DeleteWebhook(ctx, webhook))
		token, err := c.CreateToken(ctx, client.NewToken{Name: "dashboard", Scope: "read"})
		do("createToken", err)
		in.remember(token.Secret)
		do("listTokens", every(c.ListTokens(ctx)))
		do("revokeToken", c.RevokeToken(ctx, token.ID))
		do("listMembers", every(c.ListMembers(ctx)))
		do("setRole", last(c.SetRole(ctx, "user_1omg", "editor")))
		do("removeMember", c.RemoveMember(ctx, "user_1omg"))
		do("inviteMember", last(c.InviteMember(ctx, "ann@example.com", "viewer")))
		do("listInvitations", every(c.ListInvitations(ctx)))
		do("withdrawInvitation", c.WithdrawInvitation(ctx, "ann@example.com"))
		do("listMailboxes", every(c.ListMailboxes(ctx)))
		do("addMailbox", last(c.AddMailbox(ctx, client.NewMailbox{Host: "imap.invalid", User: "a", Password: "b"})))
		do("removeMailbox", c.RemoveMailbox(ctx, "box_1omg"))
		do("listAudit", every(c.ListAudit(ctx, client.AuditFilter{})))
		retention, err := c.GetRetention(ctx)
		do("getRetention", err)
		do("setRetention", last(c.SetRetention(ctx, retention)))
		do("deleteDomain", c.DeleteDomain(ctx, domain))

		missing, without := validator.Missing(), []string{"getDocument", "getDocs"}
		for _, answer := range documented {
			operation, status, _ := strings.Cut(answer, " ")
			switch _, fails := unsuccessful[operation]; {
			case slices.Contains(without, operation) || !strings.HasPrefix(status, "2"):
			case !called[operation]:
				t.Errorf("%s: got no call, want one with package client", operation)
			case !fails && !slices.ContainsFunc(documented, func(a string) bool {
				return strings.HasPrefix(a, operation+" 2") && !slices.Contains(missing, a)
			}):
				t.Errorf("%s: got no success, want one", operation)
			}
		}
	})
}

func last[T any](_ T, err error) error { return err }

func every[T any](items iter.Seq2[T, error]) error { return last(client.Collect(items)) }

func closing(content io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, content)
	return errors.Join(err, content.Close())
}
