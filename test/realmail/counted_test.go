package realmail_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/packtest"
)

// reportMail returns a mail that has an aggregate report of that id with 10 messages,
// 8 of them compliant, in the form that most reporters use.
func reportMail(id string) string {
	const record = "<record><row><source_ip>192.0.2.1</source_ip><count>%d</count>" +
		"<policy_evaluated><disposition>none</disposition><dkim>%s</dkim><spf>fail</spf></policy_evaluated></row>" +
		"<identifiers><header_from>example.com</header_from></identifiers><auth_results/></record>"
	report := "<feedback><report_metadata><org_name>Reporter Inc.</org_name><email>noreply@reporter.example</email>" +
		"<report_id>" + id + "</report_id><date_range><begin>1794614400</begin><end>1794700799</end></date_range></report_metadata>" +
		"<policy_published><domain>example.com</domain><p>none</p></policy_published>" +
		fmt.Sprintf(record, 8, "pass") + fmt.Sprintf(record, 2, "fail") + "</feedback>"
	const name = "reporter.example!example.com!1794614400!1794700799.xml.gz"
	return strings.Replace(head, "X-Odd:", "MIME-Version: 1.0\nContent-Type: application/gzip; name=\""+name+"\"\n"+
		"Content-Disposition: attachment; filename=\""+name+"\"\nContent-Transfer-Encoding: base64\nX-Odd:", 1) +
		base64.StdEncoding.EncodeToString(packtest.Gzip(report)) + "\n"
}

// TestMailedReportsAreCounted has Exim send reports to the real binary, and reads them
// back from the interface.
func TestMailedReportsAreCounted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	d := startDaemon(t, certificateFiles(t)...)
	address := d.addDomain(t, "example.com")
	ways := []eximSettings{{}, {chunking: true}, {tls: true}, {chunking: true, tls: true}}
	for i, way := range ways {
		e := newExim(t, d.SMTP, way)
		mail := reportMail(fmt.Sprint(i))
		e.send(t, mail, "bounce@reporter.example", address)
		e.send(t, mail, "bounce@reporter.example", address) // it counts once
		if got := e.queued(t); got != 0 {
			t.Errorf("%+v: got %d mails still queued want none", way, got)
		}
		if got := e.used(t); got != way {
			t.Errorf("got it sent by %+v want %+v", got, way)
		}
	}

	// What came before has been dealt with when the last one is counted.
	newExim(t, d.SMTP, eximSettings{}).send(t, reportMail("last"), "bounce@reporter.example", address)

	type summary struct {
		Total        int64 `json:"total"`
		Compliant    int64 `json:"compliant"`
		NonCompliant int64 `json:"non_compliant"`
	}
	sent := int64(len(ways) + 1)
	want := summary{10 * sent, 8 * sent, 2 * sent}
	var got summary
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(mailLimit); got != want && time.Now().Before(deadline); <-ticker.C {
		got = ask[summary](t, d, http.MethodGet, "/reports/example.com", "", http.StatusOK)
	}
	if got != want {
		t.Errorf("got %+v want %+v", got, want)
	}
}
