package web

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
)

// route is one page or action.
type route struct {
	method string
	path   string // below Prefix; {name} is one segment
	access Access
	handle func(c *call) error
}

// name is the name of the route in the access log and metrics.
func (r *route) name() string { return r.method + " " + Prefix + r.path }

// routes returns all pages and actions.
func (s *Web) routes() []route {
	const get, post = http.MethodGet, http.MethodPost
	of := s.options.Service
	return []route{
		{get, "/static/{name}", accessAnybody, s.static},
		{get, "/sign-in", accessAnybody, s.signInPage},
		{post, "/sign-in", accessAnybody, withForm(s.signIn)},
		{get, "/invitation/{token}", accessAnybody, s.invitationPage},
		{post, "/invitation/{token}", accessAnybody, withForm(s.acceptInvitation)},
		{get, "/confirm/{token}", accessAnybody, subscription(true, of.ConfirmableSubscription, nil)},
		{post, "/confirm/{token}", accessAnybody, subscription(true, of.ConfirmableSubscription, of.Confirm)},
		{get, "/unsubscribe/{token}", accessAnybody, subscription(false, of.Subscription, nil)},
		{post, "/unsubscribe/{token}", accessAnybody, subscription(false, of.Subscription, of.Unsubscribe)},
		{get, "/oidc/start", accessAnybody, s.startSingleSignOn},
		{get, "/oidc/callback", accessAnybody, s.finishSingleSignOn},
		{post, "/theme", accessAnybody, withForm(s.setTheme)},
		{post, "/sign-out", accessAnybody, s.signOut},
		{post, "/team", AccessView, withForm(s.chooseTeam)},

		{get, "/account", accessSignedIn, s.account},
		{post, "/account/name", accessSignedIn, withForm(s.setName)},
		{post, "/account/password", accessSignedIn, withForm(s.setPassword)},
		{post, "/account/sessions/end", accessSignedIn, s.endOtherSessions},
		{post, "/account/sessions/{id}/end", accessSignedIn, s.endSession},

		{get, "/", AccessView, s.overview},
		{post, "/sample", AccessEdit, s.addSample},
		{post, "/sample/delete", AccessEdit, s.deleteSample},
		{get, "/domains/new", AccessEdit, s.newDomainPage},
		{post, "/domains/new", AccessEdit, withForm(s.addDomain)},
		{get, "/domains/{domain}", AccessView, s.summary},
		{get, "/domains/{domain}/policy", AccessView, s.policy},
		{get, "/domains/{domain}/print", AccessView, s.printedDomain},
		{post, "/domains/{domain}/questions/{sender}", AccessEdit, withDomain(s.answer)},
		{post, "/domains/{domain}/forwarding", AccessEdit, withDomain(s.acceptForwarding)},
		{post, "/domains/{domain}/parked", AccessEdit, withDomain(s.setParked)},
		{post, "/domains/{domain}/senders", AccessEdit, withDomain(s.setSenderClass)},
		{post, "/domains/{domain}/senders/{sender}", AccessEdit, withDomain(s.setSenderClass)},
		{get, "/domains/{domain}/senders", AccessView, s.domainSources},
		{get, "/domains/{domain}/dns", AccessView, s.check},
		{post, "/domains/{domain}/dns", AccessEdit, withDomain(s.verify)},
		{get, "/domains/{domain}/changes", AccessView, s.history},
		{get, "/domains/{domain}/setup", AccessView, s.setup},
		{get, "/domains/{domain}/setup/steps", AccessView, s.setupSteps},
		{get, "/domains/{domain}/reports", AccessView, s.domainReports},
		{get, "/domains/{domain}/settings", AccessView, s.domainSettings},
		{post, "/domains/{domain}/selftest", AccessEdit, s.selfTest},
		{post, "/domains/{domain}/purpose", AccessEdit, withDomain(s.setPurpose)},
		{post, "/domains/{domain}/tags", AccessEdit, withDomain(s.setTags)},
		{post, "/domains/{domain}/delete", AccessOwn, withDomain(s.deleteDomain)},

		{get, "/search", AccessView, s.search},
		{get, "/senders", AccessView, s.sources},
		{get, "/senders/own", AccessView, s.ownSenders},
		{post, "/senders/own", AccessEdit, withForm(s.setOwnSender)},
		{post, "/senders/own/{sender}/remove", AccessEdit, s.removeOwnSender},
		{get, "/changes", AccessView, s.teamChanges},
		{get, "/print", AccessView, s.printedTeam},
		{get, "/senders/{group}/{source}", AccessView, s.source},

		{get, "/reports", AccessView, s.reports},
		{get, "/reports/upload", AccessEdit, s.uploadPage},
		{post, "/reports/upload", AccessEdit, s.upload},
		{get, "/reports/rejected", AccessView, s.rejected},
		{get, "/reports/rejected/{id}/original", AccessView, withID(dmarcd.ParseRejectedID, s.rejectedOriginal)},
		{post, "/reports/rejected/{id}/retry", AccessEdit, withID(dmarcd.ParseRejectedID, s.retry)},
		{post, "/reports/rejected/{id}/delete", AccessEdit, changing(dmarcd.ParseRejectedID, (*service.Team).DeleteRejected, rejectedPath, "rejected-deleted")},
		{get, "/reports/exclude", AccessEdit, s.excludePage},
		{post, "/reports/exclude", AccessEdit, withForm(s.exclude)},
		{get, "/reports/{id}", AccessView, withID(dmarcd.ParseReportID, s.report)},
		{get, "/reports/{id}/original", AccessView, withID(dmarcd.ParseReportID, s.original)},
		{post, "/reports/{id}/counted", AccessEdit, withFormID(dmarcd.ParseReportID, s.setCounted)},
		{post, "/reports/{id}/delete", AccessEdit, changing(dmarcd.ParseReportID, (*service.Team).DeleteReport, Prefix+"/reports", "report-deleted")},

		{get, "/alerts", AccessView, s.alerts},
		{post, "/alerts/rules", AccessOwn, withForm(s.setAlertRules)},
		{post, "/alerts/digest", AccessView, withForm(s.setDigest)},
		{post, "/alerts/test", AccessOwn, s.testAlert},
		{post, "/alerts/{id}/acknowledge", AccessEdit, s.acknowledgeAlert},
		{get, "/builder", AccessView, s.builder},

		{get, "/settings/tokens", AccessView, s.tokens},
		{post, "/settings/tokens", AccessOwn, withForm(s.createToken)},
		{post, "/settings/tokens/{id}/revoke", AccessOwn, changing(dmarcd.ParseTokenID, (*service.Team).RevokeToken, Prefix+"/settings/tokens", "token-revoked")},
		{get, "/settings/members", AccessView, s.members},
		{post, "/settings/members", AccessOwn, withForm(s.inviteMember)},
		{post, "/settings/members/{id}/role", AccessOwn, withFormID(dmarcd.ParseUserID, s.setRole)},
		{post, "/settings/members/{id}/remove", AccessOwn, changing(dmarcd.ParseUserID, (*service.Team).RemoveMember, Prefix+"/settings/members", "member-removed")},
		{post, "/settings/invitations/withdraw", AccessOwn, withForm(s.withdrawInvitation)},
		{get, "/settings/mailboxes", AccessView, s.mailboxes},
		{post, "/settings/mailboxes", AccessOwn, withForm(s.addMailbox)},
		{post, "/settings/mailboxes/{id}/resume", AccessOwn, changing(dmarcd.ParseMailboxID, (*service.Team).ResumeMailbox, Prefix+"/settings/mailboxes", "mailbox-resumed")},
		{post, "/settings/mailboxes/{id}/remove", AccessOwn, changing(dmarcd.ParseMailboxID, (*service.Team).RemoveMailbox, Prefix+"/settings/mailboxes", "mailbox-removed")},
		{get, "/settings/webhooks", AccessView, s.webhooks},
		{post, "/settings/webhooks", AccessOwn, withForm(s.addWebhook)},
		{get, "/settings/webhooks/{id}", AccessView, withID(dmarcd.ParseWebhookID, s.deliveries)},
		{post, "/settings/webhooks/{id}", AccessOwn, withFormID(dmarcd.ParseWebhookID, s.enableWebhook)},
		{post, "/settings/webhooks/{id}/test", AccessOwn, withID(dmarcd.ParseWebhookID, s.testWebhook)},
		{post, "/settings/webhooks/{id}/rotate", AccessOwn, withID(dmarcd.ParseWebhookID, s.rotateWebhook)},
		{post, "/settings/webhooks/{id}/remove", AccessOwn, changing(dmarcd.ParseWebhookID, (*service.Team).RemoveWebhook, webhooksPath, "webhook-removed")},
		{post, "/settings/webhooks/{id}/deliveries/{delivery}/retry", AccessOwn, withID(dmarcd.ParseWebhookID, s.retryDelivery)},
		{get, "/settings/retention", AccessView, s.retention},
		{post, "/settings/retention", AccessOwn, withForm(s.setRetention)},
		{get, "/settings/audit", AccessOwn, s.audit},

		{get, "/installation/teams", accessOperate, s.teams},
		{post, "/installation/teams", accessOperate, withForm(s.createTeam)},
		{post, "/installation/teams/{id}/api", accessOperate, withFormID(dmarcd.ParseTeamID, s.setAPI)},
		{get, "/installation/users", accessOperate, s.users},
		{post, "/installation/users/{id}/remove", accessOperate, withID(dmarcd.ParseUserID, s.removeUser)},
		{get, "/installation/audit", accessOperate, s.installationAudit},
	}
}
