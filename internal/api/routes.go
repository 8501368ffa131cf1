package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// scopeNone marks a route that needs no token.
const scopeNone dmarcd.Scope = ""

// route is one operation.
type route struct {
	method string
	path   string // below the prefix; segments may be parameters, such as {domain} or {id}
	scope  dmarcd.Scope
	handle func(c *call) error

	// addition marks a route outside the seven endpoints, whose responses never change.
	// repeatable means that it takes an idempotency key. The rest is what it reads.
	addition, repeatable bool
	inputs
}

// interfaceRoutes is the number of routes at the start of the list that belong to the
// interface.
const interfaceRoutes = 7

// name is used in the access log and in metrics.
func (r *route) name() string { return r.method + " " + r.path }

func (a *API) routes() ([]route, error) {
	docs, err := newDocumentation(a.options.BaseURL)
	if err != nil {
		return nil, err
	}
	routes := []route{
		{method: "POST", path: "/domains", scope: dmarcd.ScopeWrite, handle: a.addDomain},
		{method: "GET", path: "/domains", scope: dmarcd.ScopeRead, handle: a.listDomains},
		{method: "GET", path: "/domains/{domain}", scope: dmarcd.ScopeRead, handle: a.getDomain},
		{method: "DELETE", path: "/domains/{domain}", scope: dmarcd.ScopeWrite, handle: a.deleteDomain},
		{method: "POST", path: "/domains/{domain}/verify", scope: dmarcd.ScopeWrite, handle: a.verifyDomain},
		{method: "GET", path: "/reports/{domain}", scope: dmarcd.ScopeRead, handle: a.domainSummary},
		{method: "GET", path: "/reports", scope: dmarcd.ScopeRead, handle: a.teamSummary},

		{method: "POST", path: "/domains/bulk", scope: dmarcd.ScopeWrite, handle: a.changeDomains},
		{method: "GET", path: "/domains/{domain}/checks", scope: dmarcd.ScopeRead, handle: a.listChecks},
		{method: "GET", path: "/domains/{domain}/checks/latest", scope: dmarcd.ScopeRead, handle: a.latestCheck},
		{method: "GET", path: "/domains/{domain}/setup", scope: dmarcd.ScopeRead, handle: a.setup},
		{method: "POST", path: "/domains/{domain}/selftest", scope: dmarcd.ScopeWrite, handle: a.selfTest},
		{method: "GET", path: "/domains/{domain}/tags", scope: dmarcd.ScopeRead, handle: a.getTags},
		{method: "PUT", path: "/domains/{domain}/tags", scope: dmarcd.ScopeWrite, handle: a.setTags},
		{method: "GET", path: "/domains/{domain}/records", scope: dmarcd.ScopeRead, handle: a.listManagedRecords},
		{method: "PUT", path: "/domains/{domain}/records/{kind}", scope: dmarcd.ScopePublish, handle: a.publishRecord},
		{method: "DELETE", path: "/domains/{domain}/records/{kind}", scope: dmarcd.ScopePublish, handle: a.stopRecord},
		{method: "GET", path: "/domains/{domain}/records/{kind}/versions", scope: dmarcd.ScopeRead, handle: a.listRecordVersions},
		{method: "GET", path: "/domains/{domain}/proposals", scope: dmarcd.ScopeRead, handle: a.listRecordProposals},
		{method: "GET", path: "/domains/{domain}/target", scope: dmarcd.ScopeRead, handle: a.getRecordTarget},
		{method: "PUT", path: "/domains/{domain}/target", scope: dmarcd.ScopePublish, handle: a.setRecordTarget},
		{method: "DELETE", path: "/domains/{domain}/target", scope: dmarcd.ScopePublish, handle: a.removeRecordTarget},
		{method: "GET", path: "/search", scope: dmarcd.ScopeRead, handle: a.search},
		{method: "GET", path: "/tags", scope: dmarcd.ScopeRead, handle: whole((*service.Team).Tags, wire.NewTag, func(t dmarcd.TagCount) string { return t.Tag })},
		{method: "GET", path: "/events", scope: dmarcd.ScopeRead, handle: a.listEvents},

		{method: "GET", path: "/changes", scope: dmarcd.ScopeRead, handle: a.listChanges},
		{method: "GET", path: "/alerts", scope: dmarcd.ScopeRead, handle: a.listAlerts},
		{method: "POST", path: "/alerts/acknowledge", scope: dmarcd.ScopeWrite, handle: a.acknowledgeAlerts},
		{method: "POST", path: "/alerts/test", scope: dmarcd.ScopeWrite, handle: a.testAlert},
		{method: "GET", path: "/alerts/rules", scope: dmarcd.ScopeRead, handle: a.getAlertRules},
		{method: "PUT", path: "/alerts/rules", scope: dmarcd.ScopeWrite, handle: a.setAlertRules},
		{method: "POST", path: "/alerts/{id}/acknowledge", scope: dmarcd.ScopeWrite, handle: a.acknowledgeAlert},

		{method: "GET", path: "/webhooks", scope: dmarcd.ScopeRead, handle: whole((*service.Team).Webhooks, wire.NewWebhook, func(w dmarcd.Webhook) string { return wire.Time(w.CreatedAt) + w.ID.String() })},
		{method: "POST", path: "/webhooks", scope: dmarcd.ScopeWrite, handle: a.addWebhook},
		{method: "PATCH", path: "/webhooks/{id}", scope: dmarcd.ScopeWrite, handle: a.updateWebhook},
		{method: "DELETE", path: "/webhooks/{id}", scope: dmarcd.ScopeWrite, handle: a.deleteWebhook},
		{method: "POST", path: "/webhooks/{id}/test", scope: dmarcd.ScopeWrite, handle: a.testWebhook},
		{method: "POST", path: "/webhooks/{id}/rotate", scope: dmarcd.ScopeWrite, handle: a.rotateWebhook},
		{method: "GET", path: "/webhooks/{id}/deliveries", scope: dmarcd.ScopeRead, handle: a.listDeliveries},
		{method: "POST", path: "/webhooks/{id}/deliveries/{delivery}/retry", scope: dmarcd.ScopeWrite, handle: a.retryDelivery},

		{method: "POST", path: "/reports", scope: dmarcd.ScopeWrite, handle: a.uploadReport},
		{method: "GET", path: "/insights/reports", scope: dmarcd.ScopeRead, handle: a.listReports},
		{method: "POST", path: "/insights/reports/exclude", scope: dmarcd.ScopeWrite, handle: a.setCountedAll},
		{method: "GET", path: "/insights/reports/{id}", scope: dmarcd.ScopeRead, handle: a.getReport},
		{method: "PATCH", path: "/insights/reports/{id}", scope: dmarcd.ScopeWrite, handle: a.setCounted},
		{method: "DELETE", path: "/insights/reports/{id}", scope: dmarcd.ScopeWrite, handle: a.deleteReport},
		{method: "GET", path: "/insights/reports/{id}/records", scope: dmarcd.ScopeRead, handle: a.listRecords},
		{method: "GET", path: "/insights/reports/{id}/original", scope: dmarcd.ScopeRead, handle: a.getReportOriginal},
		{method: "GET", path: "/insights/records", scope: dmarcd.ScopeRead, handle: a.exportRecords},
		{method: "GET", path: "/insights/rejected", scope: dmarcd.ScopeRead, handle: a.listRejected},
		{method: "DELETE", path: "/insights/rejected/{id}", scope: dmarcd.ScopeWrite, handle: a.deleteRejected},
		{method: "GET", path: "/insights/rejected/{id}/original", scope: dmarcd.ScopeRead, handle: a.getRejectedOriginal},
		{method: "POST", path: "/insights/rejected/{id}/retry", scope: dmarcd.ScopeWrite, handle: a.retryRejected},
		{method: "GET", path: "/insights/daily", scope: dmarcd.ScopeRead, handle: a.listDaily},
		{method: "GET", path: "/insights/senders", scope: dmarcd.ScopeRead, handle: a.listSenders},
		{method: "GET", path: "/insights/simulate", scope: dmarcd.ScopeRead, handle: a.simulate},
		{method: "GET", path: "/insights/advice", scope: dmarcd.ScopeRead, handle: a.listAdvice},
		{method: "GET", path: "/insights/domains", scope: dmarcd.ScopeRead, handle: a.listPostures},
		{method: "PUT", path: "/domains/{domain}/questions/{key}", scope: dmarcd.ScopeWrite, handle: a.answerQuestion},
		{method: "PUT", path: "/domains/{domain}/purpose", scope: dmarcd.ScopeWrite, handle: a.setPurpose},
		{method: "PUT", path: "/domains/{domain}/parked", scope: dmarcd.ScopeWrite, handle: a.setParked},
		{method: "PUT", path: "/domains/{domain}/forwarding", scope: dmarcd.ScopeWrite, handle: a.acceptForwarding},
		{method: "PUT", path: "/domains/{domain}/senders/{key}", scope: dmarcd.ScopeWrite, handle: a.setSenderClass},
		{method: "GET", path: "/senders", scope: dmarcd.ScopeRead, handle: whole((*service.Team).TeamSenders, wire.NewTeamSender, func(s dmarcd.TeamSender) string { return s.Key })},
		{method: "PUT", path: "/senders/{key}", scope: dmarcd.ScopeWrite, handle: a.setTeamSender},
		{method: "DELETE", path: "/senders/{key}", scope: dmarcd.ScopeWrite, handle: a.removeTeamSender},

		{method: "GET", path: "/me", scope: dmarcd.ScopeRead, handle: a.getMe},
		{method: "GET", path: "/tokens", scope: dmarcd.ScopeAdmin, handle: whole((*service.Team).Tokens, wire.NewToken, func(t dmarcd.Token) string { return wire.Time(t.CreatedAt) + t.ID.String() })},
		{method: "POST", path: "/tokens", scope: dmarcd.ScopeAdmin, handle: a.createToken},
		{method: "DELETE", path: "/tokens/{id}", scope: dmarcd.ScopeAdmin, handle: a.revokeToken},
		{method: "GET", path: "/members", scope: dmarcd.ScopeAdmin, handle: whole((*service.Team).Members, wire.NewMember, func(m dmarcd.Member) string { return m.User.Email })},
		{method: "PATCH", path: "/members/{id}", scope: dmarcd.ScopeAdmin, handle: a.setRole},
		{method: "DELETE", path: "/members/{id}", scope: dmarcd.ScopeAdmin, handle: a.removeMember},
		{method: "GET", path: "/invitations", scope: dmarcd.ScopeAdmin, handle: whole((*service.Team).Invitations, wire.NewInvitation, func(i dmarcd.Invitation) string { return i.Email + wire.Time(i.ExpiresAt) })},
		{method: "POST", path: "/invitations", scope: dmarcd.ScopeAdmin, handle: a.inviteMember},
		{method: "DELETE", path: "/invitations/{email}", scope: dmarcd.ScopeAdmin, handle: a.withdrawInvitation},
		{method: "GET", path: "/mailboxes", scope: dmarcd.ScopeAdmin, handle: whole((*service.Team).Mailboxes, wire.NewMailbox, func(m dmarcd.Mailbox) string { return wire.Time(m.CreatedAt) + m.ID.String() })},
		{method: "POST", path: "/mailboxes", scope: dmarcd.ScopeAdmin, handle: a.addMailbox},
		{method: "DELETE", path: "/mailboxes/{id}", scope: dmarcd.ScopeAdmin, handle: a.removeMailbox},
		{method: "GET", path: "/audit", scope: dmarcd.ScopeAdmin, handle: a.listAudit},
		{method: "GET", path: "/retention", scope: dmarcd.ScopeAdmin, handle: a.getRetention},
		{method: "PUT", path: "/retention", scope: dmarcd.ScopeAdmin, handle: a.setRetention},

		{method: "GET", path: "/openapi.json", scope: scopeNone, handle: docs.document},
		{method: "GET", path: "/docs", scope: scopeNone, handle: docs.page},
		{method: "GET", path: "/docs/{file}", scope: scopeNone, handle: docs.viewerFile},
	}
	documented, err := documentedInputs()
	if err != nil {
		return nil, err
	}
	for i := range routes {
		r := &routes[i]
		r.addition, r.inputs = i >= interfaceRoutes, documented[r.name()]
		r.repeatable = slices.Contains(r.headers, keyHeader)
	}
	return routes, nil
}

// unknownMember returns an error if a body has a member that the document does not name for an
// addition. The error does not repeat its name, which may be a secret.
func (r *route) unknownMember(members map[string]json.RawMessage) error {
	for name := range members {
		if r.addition && !slices.Contains(r.members, name) {
			return &dmarcd.InvalidError{Code: codeUnknownMember, Message: "The body has an unknown member. The members are " + strings.Join(r.members, ", ") + "."}
		}
	}
	return nil
}

// readQuery returns the query. It rejects unknown parameters of an addition: the client may rely
// on a filter.
func (r *route) readQuery(request *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(request.URL.RawQuery)
	if err != nil && len(r.parameters) > 0 {
		return nil, &dmarcd.InvalidError{Message: "The query is malformed. Percent-encode its values."}
	}
	if err != nil || !r.addition {
		return query, nil //nolint:nilerr // the route has no parameters
	}
	for name := range query {
		if slices.Contains(r.parameters, name) {
			continue
		}
		known := "There are no parameters."
		if len(r.parameters) > 0 {
			known = "The parameters are " + strings.Join(r.parameters, ", ") + "."
		}
		return nil, &failure{http.StatusUnprocessableEntity, "unknown_parameter", "The query has an unknown parameter. " + known}
	}
	return query, nil
}
