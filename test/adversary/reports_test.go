package adversary_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// report is an aggregate report as a reporter writes it.
type report struct {
	org, email, id string
	domain         string
	day            string
	rows           []row
}

// row is a record of it.
type row struct {
	source    string
	count     string
	compliant bool
}

// about returns a report about a domain with that many messages.
func about(domain, id string, compliant, nonCompliant int64) report {
	return report{
		org: "reporter.test", email: "noreply@reporter.test", id: id, domain: domain, day: "2026-11-14",
		rows: []row{{"192.0.2.1", fmt.Sprint(compliant), true}, {"192.0.2.2", fmt.Sprint(nonCompliant), false}},
	}
}

func (r report) xml() string {
	var b strings.Builder
	r.write(&b, func(yield func(row) bool) {
		for _, row := range r.rows {
			if !yield(row) {
				return
			}
		}
	})
	return b.String()
}

// write writes the report with those rows to a writer that cannot fail.
func (r report) write(w io.Writer, rows func(yield func(row) bool)) {
	begin, err := time.Parse(time.DateOnly, r.day)
	if err != nil {
		panic(err) // a test has a wrong date
	}
	_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<feedback><version>1.0</version>
<report_metadata><org_name>%s</org_name><email>%s</email><report_id>%s</report_id>
<date_range><begin>%d</begin><end>%d</end></date_range></report_metadata>
<policy_published><domain>%s</domain><p>none</p></policy_published>
`, r.org, r.email, r.id, begin.Unix(), begin.Unix()+86399, r.domain)
	rows(func(row row) bool {
		result := "fail"
		if row.compliant {
			result = "pass"
		}
		_, _ = fmt.Fprintf(w, "<record><row><source_ip>%s</source_ip><count>%s</count><policy_evaluated><disposition>none</disposition>"+
			"<dkim>%s</dkim><spf>fail</spf></policy_evaluated></row><identifiers><header_from>%s</header_from></identifiers></record>\n",
			row.source, row.count, result, r.domain)
		return true
	})
	_, _ = fmt.Fprint(w, "</feedback>\n")
}

// distinct returns a report in gzip whose records all have another address,
// from the number first on.
func distinct(t testing.TB, domain, id string, first, records int) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := musttest.Get(gzip.NewWriterLevel(&packed, gzip.BestSpeed))(t)
	r := about(domain, id, 0, 0)
	r.write(w, func(yield func(row) bool) {
		for n := first; n < first+records; n++ {
			// Neighbours differ in the first octet, so that no network gathers them.
			source := fmt.Sprintf("%d.%d.%d.%d", 20+n%180, n/180%256, n/180/256%256, n/180/256/256)
			if !yield(row{source, "1", n%2 == 0}) {
				return
			}
		}
	})
	musttest.Do(t, w.Close())
	return packed.Bytes()
}

// closings returns a document of 61 open elements and very many end tags that
// close none of them, in gzip within the permitted ratio.
func closings(t testing.TB, size int) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	block := strings.Repeat("</x>", 4<<10)
	noise := uint64(88172645463325252)
	_, _ = fmt.Fprint(w, "<feedback>")
	for i := range 60 {
		_, _ = fmt.Fprintf(w, "<e%d>", i)
	}
	for written := 0; written < size; written += len(block) {
		_, _ = fmt.Fprint(w, block)
		for range 8 { // what does not compress, or the ratio gives it away
			noise ^= noise << 13
			noise ^= noise >> 7
			noise ^= noise << 17
			_, _ = fmt.Fprintf(w, "<!--%x-->", noise)
		}
	}
	musttest.Do(t, w.Close())
	return packed.Bytes()
}

// mailFrom returns a mail of a domain with an attachment. More header fields
// may stand before the others.
func mailFrom(domain, attachment string, header ...string) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(attachment))
	var lines strings.Builder
	for len(encoded) > 76 {
		lines.WriteString(encoded[:76] + "\r\n")
		encoded = encoded[76:]
	}
	return strings.Join(append(header, ""), "\r\n") +
		"From: Reports <noreply@" + domain + ">\r\nTo: reports@" + reportDomain + "\r\nSubject: Report Domain\r\n" +
		"Date: Sun, 15 Nov 2026 09:30:00 +0000\r\nMessage-ID: <" + fmt.Sprint(serial.Add(1)) + "@" + domain + ">\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n" + lines.String() + encoded + "\r\n"
}

// TestManyRecords has a team upload very many records at once.
func TestManyRecords(t *testing.T) {
	uploads, records := 8, 15_000
	if soak {
		records = 1_000_000
	}
	onEach(t, func(t *testing.T, a *arena) {
		bodies := make([][]byte, uploads)
		for i := range bodies {
			bodies[i] = distinct(t, "mallory.test", fmt.Sprint("many ", i), i*records, records)
		}
		var mu sync.Mutex
		stored := int64(0)
		a.watch("many records", func() {
			var attacking sync.WaitGroup
			for i, body := range bodies {
				attacking.Go(func() {
					got, err := a.mallory.try(t.Context(), http.MethodPost, "/reports", "application/octet-stream", body)
					switch {
					case err != nil:
						t.Errorf("upload %d: %v", i, err)
					case got.status == http.StatusCreated:
						mu.Lock()
						defer mu.Unlock()
						stored++
					case got.status != http.StatusServiceUnavailable && got.status != http.StatusTooManyRequests:
						t.Errorf("upload %d: got %v want 201, or to be told to come later", i, got)
					}
				})
			}
			attacking.Wait()
		})
		if stored == 0 {
			t.Error("got none of the uploads stored want some")
		}
		if got, want := a.mallory.counted("").Total, stored*int64(records); got != want {
			t.Errorf("got %d messages counted want %d: a report counts as a whole or not at all", got, want)
		}
		a.d.Stop()
	})
}

// TestLongRecords has a team with many domains whose DMARC records are as long as DNS allows, and
// asks for long lists of them many times at once.
func TestLongRecords(t *testing.T) {
	onSQLite(t, func(t *testing.T, a *arena) {
		const domains, clients = 150, 48
		long := strings.Repeat(` "`+strings.Repeat("x", 250)+`"`, 230)
		zone := ""
		for i := range domains {
			zone += fmt.Sprintf("_dmarc.d%d.evil.test. 0 TXT \"v=DMARC1; p=none; x=\"%s\n", i, long)
		}
		a.dns.setZone(t, zone)
		each := func(n int, do func(i int)) {
			var all sync.WaitGroup
			slots := make(chan struct{}, clients)
			for i := range n {
				slots <- struct{}{}
				all.Go(func() {
					do(i)
					<-slots
				})
			}
			all.Wait()
		}
		each(domains, func(i int) { a.mallory.add(fmt.Sprintf("d%d.evil.test", i)) })
		a.watch("long records", func() {
			each(2*clients, func(i int) {
				path := []string{"/domains?limit=1000", "/domains", "/insights/advice?limit=1000", "/events?limit=1000"}[i%4]
				got, err := a.mallory.try(context.WithoutCancel(t.Context()), http.MethodGet, path, "", nil)
				if err != nil || got.status != http.StatusOK && got.status != http.StatusServiceUnavailable {
					t.Errorf("%s: got %d, %v", path, got.status, err)
				}
			})
		})
		a.d.Stop()
	}, "DMARCD_RATE_LIMIT=0")
}
