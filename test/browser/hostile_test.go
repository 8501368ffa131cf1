package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// hostile is a text that runs a script, marks the page, and asks another host, wherever
// it is taken for HTML: in a text, in an attribute, in a script. The word tells where it
// was put.
func hostile(word string) string {
	return word + `'"--></title></script></textarea><script data-hostile>alert(1)</script><img data-hostile src="http://hostile.example/` +
		word + `" onerror="alert(2)"><svg data-hostile onload="alert(3)"></svg>{{.}}${alert(4)}`
}

// hostileReport has such a text in every field that may hold one.
func hostileReport() string {
	return document(sample{
		org: hostile("org"), email: hostile("email"), extra: hostile("extra"), id: hostile("id"), domain: "example.com",
	}, sample{
		source: "192.0.2.66", messages: 3, disposition: hostile("disposition"), dkim: hostile("dkim"), spf: hostile("spf"),
		reason: hostile("reason"), comment: hostile("comment"), envelopeTo: hostile("to"), headerFrom: "example.com",
		selector: hostile("selector"), dkimDomain: hostile("dkimdomain"), humanResult: hostile("human"), spfDomain: hostile("spfdomain"), scopeSPF: hostile("scope"),
	}, sample{
		source: hostile("address"), messages: 2, disposition: "none", dkim: "fail", spf: "fail", headerFrom: hostile("from"),
		selector: "javascript:alert(5)", dkimDomain: "javascript:alert(6)", spfDomain: "javascript:alert(7)",
	})
}

// hostileTLSReport is a TLS report (RFC 8460) of the same kind.
func hostileTLSReport() string {
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	report, err := json.Marshal(map[string]any{
		"organization-name": hostile("tlsorg"), "contact-info": hostile("tlscontact"), "report-id": hostile("tlsid"),
		"date-range": map[string]string{"start-datetime": yesterday + "T00:00:00Z", "end-datetime": yesterday + "T23:59:59Z"},
		"policies": []any{map[string]any{
			"policy": map[string]any{
				"policy-type": "sts", "policy-domain": "example.com", "policy-string": []string{hostile("policy")}, "mx-host": []string{hostile("mx")},
			},
			"summary": map[string]int{"total-successful-session-count": 1, "total-failure-session-count": 2},
			"failure-details": []any{map[string]any{
				"result-type": hostile("result"), "sending-mta-ip": hostile("mta"), "receiving-mx-hostname": hostile("mxname"),
				"receiving-mx-helo": hostile("helo"), "failed-session-count": 2, "additional-information": hostile("info"), "failure-reason-code": hostile("code"),
			}},
		}},
	})
	if err != nil {
		panic(err) // strings and numbers are always JSON
	}
	return string(report)
}

// hostileFailureReport is a failure report (RFC 6591) of the same kind: a whole mail.
func hostileFailureReport() string {
	return strings.ReplaceAll(fmt.Sprintf(`From: reporter@receiver.example
To: reports@reports.example
Subject: %[1]s
Date: %[8]s
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary=part

--part
Content-Type: text/plain

%[1]s
--part
Content-Type: message/feedback-report

Feedback-Type: auth-failure
User-Agent: %[2]s
Version: 1
Auth-Failure: dmarc
Source-IP: 192.0.2.66
Arrival-Date: %[8]s
Reported-Domain: example.com
Authentication-Results: %[3]s
DKIM-Selector: %[4]s
Delivery-Result: %[5]s

--part
Content-Type: text/rfc822-headers

From: %[6]s <a@example.com>
To: b@receiver.example
Subject: %[7]s

--part--
`, hostile("subject"), hostile("agent"), hostile("results"), hostile("failselector"), hostile("delivery"),
		hostile("sender"), hostile("failsubject"), time.Now().UTC().Format(time.RFC1123Z)), "\n", "\r\n")
}

// hostileZone has such texts in every record that a check shows.
func hostileZone() string {
	record := func(text string) string {
		// Character strings have at most 255 bytes, and quotes are escaped.
		var parts []string
		for len(text) > 0 {
			n := min(len(text), 200)
			parts = append(parts, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, `;`, `\;`).Replace(text[:n])+`"`)
			text = text[n:]
		}
		return strings.Join(parts, " ")
	}
	return "example.com. TXT " + record("v=spf1 include:"+hostile("include")+" exp="+hostile("exp")+" -all") + "\n" +
		"_dmarc.example.com. TXT " + record("v=DMARC1; p=none; x="+hostile("dmarc")+"; rua=mailto:a@example.com") + "\n" +
		"_mta-sts.example.com. TXT " + record("v=STSv1; id="+hostile("sts")) + "\n" +
		"_smtp._tls.example.com. TXT " + record("v=TLSRPTv1; rua=mailto:"+hostile("tlsrpt")) + "\n" +
		"default._bimi.example.com. TXT " + record("v=BIMI1; l="+hostile("bimi")) + "\n" +
		"default._domainkey.example.com. TXT " + record("v=DKIM1; n="+hostile("note")+"; p=") + "\n" +
		`example.com. MX 10 mx\<script\>alert(8)\</script\>.example.com.` + "\n"
}

// walk visits a page and all that it leads to on the site, each path once, and calls
// look on every one of them.
func (b *tab) walk(from string, look func()) (seen map[string]bool) {
	b.t.Helper()
	const enough = 120
	seen = map[string]bool{}
	waiting := []string{from}
	for len(waiting) > 0 && len(seen) < enough {
		next := waiting[0]
		waiting = waiting[1:]
		kind, _, _ := strings.Cut(next, "#")
		if seen[kind] {
			continue
		}
		seen[kind] = true
		b.visit(next, http.StatusOK)
		look()
		waiting = append(waiting, read(b, evaluate[[]string](`[...document.querySelectorAll("a[href^='/app/']:not([download])")]
			.map((a) => a.getAttribute("href")).filter((href) => !/static|original|format=pdf|[?&](sort|days|from)=/.test(href))`))...)
	}
	return seen
}

// TestStoredScript sends texts that want to be scripts by every way that outsiders
// have, and walks through all pages. The watch of the tab fails the test if a script
// ran, another host was asked, or the Content-Security-Policy had to step in.
func TestStoredScript(t *testing.T) {
	t.Parallel()
	s := serve(t, hostileZone())
	s.run("domain", "add", "--team", "default", "example.com")
	s.run("domain", "verify", "--team", "default", "example.com")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	for name, content := range map[string]string{
		"aggregate.xml": hostileReport(), "tls.json": hostileTLSReport(), "failure.eml": hostileFailureReport(),
		`<img src=x onerror=alert(9) data-hostile>.txt`: hostile("garbage"),
	} {
		receipts := b.upload(file(t, name, content))
		if stored := strings.Contains(receipts, "stored"); stored != !strings.HasSuffix(name, ".txt") {
			t.Errorf("%s: got %q", name, receipts)
		}
		b.unhurt()
	}
	b.visit("/app/settings/tokens", http.StatusOK)
	b.write("name", `</td><img data-hostile src=x onerror="alert(11)">`)
	b.press("Create token")
	b.unhurt()

	seen := b.walk("/app/", b.unhurt)
	for _, want := range []string{
		"/app/domains/example.com", "/app/domains/example.com/dns", "/app/domains/example.com/policy?p=reject", "/app/activity/dns", "/app/activity/everything", "/app/activity", "/app/domains/example.com/changes",
		"/app/reports/rejected", "/app/settings/audit", "/app/tools/dmarc",
	} {
		if !seen[want] {
			t.Errorf("got no visit of %s want every page visited", want)
		}
	}
	b.unveiled("/app/reports?kind=aggregate", "org", "comment", "selector", "dkimdomain", "spfdomain", "extra", "address")
	b.unveiled("/app/reports?kind=tls", "tlsorg", "tlsid", "mx", "result", "policy")
	b.unveiled("/app/reports?kind=failure", "agent", "failselector", "results")
	b.visit("/app/domains/example.com/dns", http.StatusOK)
	b.shows("dmarc'\"-->")
	for _, group := range []string{"selector", "envelope", "reporter", "from", "address"} {
		b.visit("/app/senders?group="+group, http.StatusOK)
		b.unhurt()
	}
	b.visit("/app/tools/dmarc?record="+strings.ReplaceAll(hostile("builder"), " ", "+"), http.StatusOK)
	b.unhurt()
	b.visit("/app/sign-in?next=javascript:alert(10)", http.StatusOK)
	b.unhurt()
}

// unhurt wants no element in the page that came from a text.
func (b *tab) unhurt() {
	b.t.Helper()
	const foreign = `[...document.querySelectorAll("[data-hostile], a[href^='javascript:' i], [onload], [onerror]")].map((e) => e.outerHTML)`
	for _, element := range read(b, evaluate[[]string](foreign)) {
		b.t.Errorf("%s: got the element %s of an outsider want text", b.path(), element)
	}
}

// unveiled follows a list to its first report and wants the texts there, as they were
// sent.
func (b *tab) unveiled(list string, words ...string) {
	b.t.Helper()
	b.visit(list, http.StatusOK)
	b.load(chromedp.Click(chromedp.CSS(`main a[href*="/app/reports/rep_"]`)))
	text := read(b, chromedp.TextContent(chromedp.CSS("main")))
	for _, word := range words {
		if !strings.Contains(text, word+`'"-->`) {
			b.t.Errorf("%s: got no text that begins with %s want it shown as it was sent", b.path(), word)
		}
	}
}

// upload sends files by the form, and returns what became of them.
func (b *tab) upload(files ...string) string {
	b.t.Helper()
	b.visit("/app/reports/upload", http.StatusOK)
	b.do(
		chromedp.SetUploadFiles(chromedp.CSS("#files"), files),
		chromedp.Click(chromedp.CSS("main form button")),
		chromedp.WaitVisible(chromedp.CSS("[data-upload-result] table")),
	)
	return b.text("[data-upload-result]")
}
