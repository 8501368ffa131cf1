package web_test

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// makeSample fills a database with a team that has data of every kind, with hostile text
// wherever possible, and an empty team.
func makeSample(t *testing.T, file string) sample {
	t.Helper()
	s := openSite(t, storetest.DB{Engine: "sqlite", DSN: file})
	s.sample = sample{file: file, sessions: map[string]string{}}
	s.clock = now.AddDate(0, 0, -20)
	for _, team := range []struct {
		name string
		id   *dmarcd.TeamID
	}{{"Example & Sons", &s.team}, {"Second <Team>", &s.emptyTeam}} {
		made := storetest.Team(t, s.store, team.name)
		*team.id = made.ID
	}
	team := s.service.Team(s.team, service.CommandLine())
	s.makeHistory(t, team)
	musttest.Get(s.store.OpenZone(t.Context(), "dns.example.net", ""))(t)
	for base, policy := range []string{"none", "quarantine"} {
		musttest.Get(team.PublishRecord(t.Context(), sampleDomain, int64(base), dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=" + policy, Reason: "<b>ready</b>"}))(t)
	}
	musttest.Get(s.store.Team(s.team).ProposeRecord(t.Context(), sampleDomain, 0, sampleProposal, 0))(t)
	target := dmarcd.PublishTarget{Kind: dmarcd.TargetRFC2136, Server: "ns1.example.com"}
	musttest.Get(team.SetRecordTarget(t.Context(), sampleDomain, target, "key:secret"))(t)
	s.makeReports(t, team)
	s.makeSettings(t, team)
	s.clock = now
	s.makeUsers(t)
	return s.sample
}

// sampleProposal is proposed for the sample domain.
var sampleProposal = dmarcd.RecordProposal{RecordVersion: dmarcd.RecordVersion{
	Kind: dmarcd.RecordTLSRPT, Version: 1, Content: "v=TLSRPTv1; rua=mailto:tls@example.com", Author: "a colleague",
}}

// makeHistory adds the domain, and checks it with two DNS states.
func (s *site) makeHistory(t *testing.T, team *service.Team) {
	t.Helper()
	domain := musttest.Get(team.AddDomain(t.Context(), sampleDomain))(t)
	s.reportAddress = domain.ReportAddress("reports.example")
	records := func(policy, spf string) string {
		return strings.Join([]string{
			`_dmarc.example.com TXT "v=DMARC1; p=` + policy + `; rua=mailto:` + s.reportAddress + `"`,
			`example.com TXT "` + spf + `"`,
			`example.com MX 10 mx1.example.com`,
			`mx1.example.com A 192.0.2.25`,
			`_spf.mailbox.example TXT "v=spf1 ip4:192.0.2.0/24 ~all"`,
			`s1._domainkey.example.com TXT "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="`,
			`_smtp._tls.example.com TXT "v=TLSRPTv1; rua=mailto:` + s.reportAddress + `"`,
			`reports.example TXT "v=DMARC1"`,
			`*._report._dmarc.reports.example TXT "v=DMARC1"`,
		}, "\n")
	}
	check := dmarcd.DueDomain{Team: s.team, Name: sampleDomain, Full: true}
	s.zone.zone = dnstest.New(records("none", "v=spf1 mx -all"))
	musttest.Do(t, s.service.CheckDue(t.Context(), check))
	s.clock = now.Add(-20 * time.Minute)
	s.zone.zone = dnstest.New(records("quarantine", "v=spf1 include:_spf.mailbox.example include:gone.example exists:<script>alert(1)</script> mx -all"))
	musttest.Do(t, s.service.CheckDue(t.Context(), check))
}

// makeReports uploads a report of each kind, one with hostile text, and one that is
// rejected.
func (s *site) makeReports(t *testing.T, team *service.Team) {
	t.Helper()
	s.clock = now.Add(-3 * time.Hour)
	yesterday := now.AddDate(0, 0, -1).Truncate(24 * time.Hour)
	s.aggregate = s.upload(t, team, "report.xml", aggregateXML("bigmail.example", "2026-11-14.0123456789", yesterday,
		recordXML("192.0.2.17", 12345, "none", "pass", "pass", sampleDomain, "bounce.example.com"),
		recordXML("2001:db8::25", 40, "quarantine", "fail", "fail", sampleDomain, "bulk.example.net"),
		recordXML("198.51.100.7", 3, "reject", "fail", "fail", sampleDomain, formula),
	))
	s.odd = s.upload(t, team, hostile, aggregateXML(hostile, formula, yesterday.AddDate(0, 0, -1),
		recordXML("198.51.100.8", 12, "none", "fail", "fail", sampleDomain, hostile),
	))
	s.failure = s.upload(t, team, "failure.eml", failureMail())
	s.tls = s.upload(t, team, "tls.json", tlsJSON())
	s.upload(t, team, hostile, "this is no report")
	rejected, err := team.Rejected(t.Context(), 0, 10)
	if err != nil || len(rejected) == 0 {
		t.Fatalf("got %d rejected items and %v, want one", len(rejected), err)
	}
	s.rejected = rejected[0].ID
}

// upload uploads a file, and returns the id of its report.
func (s *site) upload(t *testing.T, team *service.Team, name, content string) dmarcd.ReportID {
	t.Helper()
	body := musttest.Get(s.service.ReceiveUpload(strings.NewReader(content), 1<<20))(t)
	defer body.Close()
	receipts, err := team.Upload(t.Context(), name, body)
	if err != nil || len(receipts) != 1 {
		t.Fatalf("%s: got %+v and %v, want one receipt", name, receipts, err)
	}
	return receipts[0].ID
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}

func aggregateXML(reporter, id string, begin time.Time, records ...string) string {
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<feedback><version>1.0</version>
<report_metadata><org_name>%s</org_name><email>postmaster@bigmail.example</email><report_id>%s</report_id>
<date_range><begin>%d</begin><end>%d</end></date_range></report_metadata>
<policy_published><domain>%s</domain><adkim>r</adkim><aspf>r</aspf><p>quarantine</p><sp>reject</sp><pct>100</pct></policy_published>
%s</feedback>`, escaped(reporter), escaped(id), begin.Unix(), begin.Add(24*time.Hour).Unix()-1, sampleDomain, strings.Join(records, "\n"))
}

func recordXML(address string, count int, disposition, dkim, spf, from, envelope string) string {
	return fmt.Sprintf(`<record><row><source_ip>%s</source_ip><count>%d</count>
<policy_evaluated><disposition>%s</disposition><dkim>%s</dkim><spf>%s</spf><reason><type>local_policy</type><comment>%s</comment></reason></policy_evaluated></row>
<identifiers><header_from>%s</header_from><envelope_from>%s</envelope_from></identifiers>
<auth_results><dkim><domain>%s</domain><selector>s1</selector><result>%s</result></dkim><spf><domain>%s</domain><scope>mfrom</scope><result>%s</result></spf></auth_results></record>`,
		address, count, disposition, dkim, spf, escaped(hostile), from, escaped(envelope), from, dkim, escaped(envelope), spf)
}

func failureMail() string {
	return strings.ReplaceAll(`From: reports@mailbox.example
To: r@reports.example
Subject: Failure report
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: text/plain

A message failed.
--b
Content-Type: message/feedback-report

Feedback-Type: auth-failure
Version: 1
User-Agent: `+hostile+`
Auth-Failure: dmarc
Reported-Domain: example.com
Source-IP: 198.51.100.7
Arrival-Date: Sat, 14 Nov 2026 08:00:00 +0000
--b
Content-Type: text/rfc822-headers

From: <x@example.com>
Subject: `+hostile+`
--b--
`, "\n", "\r\n")
}

func tlsJSON() string {
	return `{"organization-name":"bigmail.example","date-range":{"start-datetime":"2026-11-14T00:00:00Z","end-datetime":"2026-11-14T23:59:59Z"},
"contact-info":"smtp@bigmail.example","report-id":"tls-1","policies":[{"policy":{"policy-type":"sts","policy-string":["version: STSv1","mode: enforce"],
"policy-domain":"example.com","mx-host":["*.mail.example.com"]},"summary":{"total-successful-session-count":5326,"total-failure-session-count":303},
"failure-details":[{"result-type":"certificate-expired","sending-mta-ip":"192.0.2.4","receiving-mx-hostname":"<b>mx1</b>.mail.example.com","failed-session-count":303}]}]}`
}

// secretPath is part of a chat URL and must not appear on any page.
const secretPath = "T000-B000-XXXX"

// makeSettings adds a token, a mailbox and webhooks.
func (s *site) makeSettings(t *testing.T, team *service.Team) {
	t.Helper()
	_, _, err := team.CreateToken(t.Context(), service.NewToken{Name: hostile, Scope: dmarcd.ScopeRead})
	musttest.Do(t, err)
	tokens := musttest.Get(team.Tokens(t.Context()))(t)
	s.token = tokens[0].ID.String()
	crm := dmarcd.TeamSender{Key: "crm", Name: "CRM " + hostile[:min(len(hostile), 60)], Class: dmarcd.ClassYours, Hosts: []string{"out.crm.example"}}
	musttest.Get(team.SetTeamSender(t.Context(), crm, []string{"203.0.113.64/26"}))(t)
	mailbox, err := team.AddMailbox(t.Context(), service.NewMailbox{Mailbox: dmarcd.Mailbox{
		Host: "imap.example.com", Port: 993, Security: dmarcd.SecurityTLS, Username: "reports", Method: dmarcd.LoginPassword,
		Folder: "INBOX", After: dmarcd.AfterFlag,
	}, Password: "open sesame"})
	musttest.Do(t, err)
	s.mailbox = mailbox.ID.String()
	webhook, _, err := team.AddWebhook(t.Context(), dmarcd.Webhook{URL: "https://hooks.example/dmarc?x=" + url.QueryEscape(hostile)})
	musttest.Do(t, err)
	s.clock = s.clock.Add(time.Second) // listed by time
	chat, _, err := team.AddWebhook(t.Context(), dmarcd.Webhook{URL: "https://chat.example/services/" + secretPath, Format: dmarcd.FormatSlack, Domains: []string{sampleDomain}})
	musttest.Do(t, err)
	delivery := musttest.Get(team.TestWebhook(t.Context(), webhook.ID))(t)
	s.webhook, s.chat, s.delivery = webhook.ID.String(), chat.ID.String(), delivery.ID.String()
	alerts, err := team.Alerts(t.Context(), dmarcd.AlertFilter{}, 0, 1)
	if err != nil || len(alerts) == 0 {
		t.Fatal("no alert", err)
	}
	s.alert = fmt.Sprint(alerts[0].Event.Seq)
}

// makeUsers creates users with the same password and signs them in, and creates two
// invitations.
func (s *site) makeUsers(t *testing.T) {
	t.Helper()
	// A hash that takes little time to verify.
	salt, encode := make([]byte, 16), base64.RawStdEncoding.EncodeToString
	hash := "$argon2id$v=19$m=8,t=1,p=1$" + encode(salt) + "$" + encode(argon2.IDKey([]byte(samplePassword), salt, 1, 8, 1, 32))
	sessions := auth.NewSessions(s.store, func() time.Time { return s.clock }, nil)
	for _, user := range []struct {
		email    string
		team     dmarcd.TeamID
		role     dmarcd.Role
		operator bool
	}{
		{viewer, s.team, dmarcd.RoleViewer, false},
		{editor, s.team, dmarcd.RoleEditor, false},
		{owner, s.team, dmarcd.RoleOwner, false},
		{operator, s.team, dmarcd.RoleOwner, true},
		{elsewhere, s.emptyTeam, dmarcd.RoleOwner, false},
		{zoe, 0, "", false},
	} {
		joined := s.letIn(t, dmarcd.Invitation{Email: user.email, Team: user.team, Role: user.role, Operator: user.operator}, hash)
		if user.email == viewer {
			s.member = joined.ID.String()
		}
		joined.ProvedAt = s.clock
		s.sessions[user.email] = musttest.Get(sessions.Begin(t.Context(), joined, auth.Client{Address: "192.0.2.7", UserAgent: hostile}, ""))(t)
	}
	musttest.Get(s.service.Team(s.team, s.actor(t, owner)).InviteMember(t.Context(), "new@example.com", dmarcd.RoleEditor))(t)
	var secret [32]byte
	s.invitation, secret = auth.NewInvitation()
	musttest.Do(t, s.store.CreateInvitation(t.Context(), secret, dmarcd.Invitation{
		Email: "joining@example.com", Team: s.team, Role: dmarcd.RoleEditor, ExpiresAt: s.clock.Add(time.Hour),
	}))
}

// letIn creates a user by an invitation.
func (s *site) letIn(t *testing.T, invitation dmarcd.Invitation, passwordHash string) dmarcd.SignIn {
	t.Helper()
	_, secret := auth.NewInvitation()
	invitation.Mailed, invitation.ExpiresAt = true, s.clock.Add(time.Hour)
	musttest.Do(t, s.store.CreateInvitation(t.Context(), secret, invitation))
	return musttest.Get(s.store.UseInvitation(t.Context(), secret, dmarcd.Claim{Name: "Ada <Example>", PasswordHash: passwordHash}))(t)
}
