package web_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/goldentest"
)

type page struct {
	name, path string
	// user views it: the operator, or a member of the empty team.
	user string
	// golden means that the page is compared with a golden file.
	golden bool
}

// allPages returns all pages of the sample.
func (s *site) allPages() []page {
	const domain = "/app/domains/example.com"
	report := func(id interface{ String() string }) string { return "/app/reports/" + id.String() }
	pages := []page{
		{name: "overview", path: "/app/", golden: true},
		{name: "domains", path: "/app/domains"},
		{name: "domain-new", path: "/app/domains/new"},
		{name: "domain-summary", path: domain + "?done=domain-checked", golden: true},
		{name: "domain-policy", path: domain + "/policy?p=reject&sp=reject"},
		{name: "domain-senders", path: domain + "/senders"},
		{name: "domain-spoofing", path: domain + "/senders?class=spoofing"},
		{name: "activity", path: "/app/activity", golden: true},
		{name: "activity-dns", path: "/app/activity/dns?days=30"},
		{name: "activity-everything", path: "/app/activity/everything?days=30"},
		{name: "domain-print", path: domain + "/print"},
		{name: "print", path: "/app/print"},
		{name: "domain-senders", path: domain + "/senders?group=address"},
		{name: "domain-dns", path: domain + "/dns", golden: true},
		{name: "domain-history", path: domain + "/changes"},
		{name: "domain-setup", path: domain + "/setup"},
		{name: "domain-setup-steps", path: domain + "/setup/steps"},
		{name: "domain-failure-reports", path: domain + "/reports?kind=failure"},
		{name: "domain-tls-reports", path: domain + "/reports?kind=tls"},
		{name: "domain-settings", path: domain + "/settings"},
		{name: "domain-record", path: domain + "/records/dmarc"},
		{name: "domain-record", path: domain + "/records/tls_rpt"},
		{name: "domain-target", path: domain + "/target"},
		{name: "search", path: "/app/search?q=example"},
		{name: "senders", path: "/app/senders?sort=name"},
		{name: "sender", path: "/app/senders/header_from/example.com?domain=example.com"},
		{name: "senders-own", path: "/app/senders/own"},
		{name: "reports", path: "/app/reports"},
		{name: "report-aggregate", path: report(s.aggregate), golden: true},
		{name: "report-odd", path: report(s.odd)},
		{name: "report-failure", path: report(s.failure)},
		{name: "report-tls", path: report(s.tls)},
		{name: "rejected", path: "/app/reports/rejected"},
		{name: "exclude", path: "/app/reports/exclude?reporter=receiver.example&from=2026-11-01"},
		{name: "upload", path: "/app/reports/upload"},
		{name: "builder", path: "/app/tools/dmarc?p=reject&sp=quarantine&np=reject&t=y&rua=a@example.com&domain=example.org", golden: true},
		{name: "builder-paste", path: "/app/tools/dmarc?record=v%3DDMARC1%3B+p%3Dreject%3B+pct%3D50%3B+x%3D%3Cscript%3E"},
		{name: "tools", path: "/app/tools"},
		{name: "tools-mail", path: "/app/tools/mail"},
		{name: "tools-check", path: "/app/tools/check?domain=example.com"},
		{name: "builder-spf", path: "/app/tools/spf?domain=example.com"},
		{name: "builder-mta-sts", path: "/app/tools/mta-sts?domain=example.com"},
		{name: "builder-tls-rpt", path: "/app/tools/tls-rpt?domain=example.com"},
		{name: "builder-bimi", path: "/app/tools/bimi?domain=example.com"},
		{name: "settings-tokens", path: "/app/settings/tokens"},
		{name: "settings-members", path: "/app/settings/members"},
		{name: "settings-mailboxes", path: "/app/settings/mailboxes"},
		{name: "settings-notifications", path: "/app/settings/notifications"},
		{name: "settings-notifications-new", path: "/app/settings/notifications/new/webhook"},
		{name: "settings-channel", path: "/app/settings/notifications/" + s.webhook + "?done=channel-added"},
		{name: "settings-retention", path: "/app/settings/retention", golden: true},
		{name: "settings-team", path: "/app/settings/team"},
		{name: "settings-audit", path: "/app/settings/audit"},
		{name: "account", path: "/app/account"},
		{name: "installation-teams", path: "/app/installation/teams"},
		{name: "installation-users", path: "/app/installation/users"},
		{name: "installation-audit", path: "/app/installation/audit"},
		{name: "not-found", path: "/app/nothing"},
	}
	for i := range pages {
		pages[i].user = operator
	}
	for name, path := range map[string]string{
		"overview": "/app/", "senders": "/app/senders", "reports": "/app/reports", "rejected": "/app/reports/rejected",
		"tokens": "/app/settings/tokens", "mailboxes": "/app/settings/mailboxes", "notifications": "/app/settings/notifications",
	} {
		pages = append(pages, page{name: name + "-empty", path: path, user: elsewhere})
	}
	return append(pages,
		page{name: "sign-in", path: "/app/sign-in?next=%2Fapp%2Fsenders"},
		page{name: "invitation", path: "/app/invitation/" + s.invitation},
	)
}

// varying matches what differs between runs: hashes of assets, elements that depend on
// built charts, and random ids.
var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`/app/static/([a-z]+)-[0-9a-f]{12}\.`), "/app/static/$1."},
	{regexp.MustCompile(`\n<script type="module" src="/app/static/charts\.js"></script>|\n<div class="plot".*</div>| · <a href="/app/static/licenses.txt">Licences</a>|(<details class="numbers") open`), "$1"},
	{regexp.MustCompile(`\n{2,}`), "\n"},
	{regexp.MustCompile(`\b(team|rep|rej|tok|box|user|chk|whk|dlv)_[0-9A-Za-z]+`), "${1}_1"},
	{regexp.MustCompile(`[a-z2-7]{26}@reports\.example`), "r4x7@reports.example"},
}

// wholeGolden is the page of which the golden file has the frame too.
const wholeGolden = "settings-retention"

func TestGoldenPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, page := range s.allPages() {
		if !page.golden {
			continue
		}
		got := s.get(page.user, page.path).Body.String()
		if page.name != wholeGolden {
			_, got, _ = strings.Cut(got, "</header>\n")
			got, _, _ = strings.Cut(got, "<footer")
		}
		for _, v := range varying {
			got = v.pattern.ReplaceAllString(got, v.with)
		}
		goldentest.Check(t, "testdata/"+page.name+".golden.html", got)
	}
}
