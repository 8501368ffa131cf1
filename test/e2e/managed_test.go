package e2e_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// answering matches the address of the DNS listener in the log.
var answering = regexp.MustCompile(`"msg":"answering DNS queries","address":"([^"]+)"`)

// zoneSettings are those of a server with a zone.
var zoneSettings = []string{"DMARCD_ZONE=dns.example.net", "DMARCD_ZONE_LISTEN=127.0.0.1:0", "DMARCD_ZONE_NAMESERVERS=ns1.dns.example.net=127.0.0.1,ns2.example.org"}

// managedRecord is a record as the command line prints it.
type managedRecord struct {
	Kind, Name, Target, State, Record, Effect, Note string
	Served                                          []string
	Version                                         int
}

// record runs a command about the managed records of a domain that has one.
func (in *installation) record(args ...string) managedRecord {
	in.t.Helper()
	var records []managedRecord
	musttest.Do(in.t, json.Unmarshal([]byte(in.do(append([]string{"record"}, append(args, "--team", "crew", "--json")...)...)), &records))
	if len(records) != 1 {
		in.t.Fatalf("got %+v, want one record", records)
	}
	return records[0]
}

// dnsServer waits until the daemon is ready and answers DNS queries, and returns where.
func (s *server) dnsServer() string {
	s.await()
	daemon.Eventually(s.in.t, daemon.StartLimit, "the daemon answers DNS queries", func() bool { return answering.MatchString(s.Log()) })
	return answering.FindStringSubmatch(s.Log())[1]
}

// awaitText waits until a server answers with the TXT record want.
func awaitText(t *testing.T, server, name, want string) {
	t.Helper()
	daemon.Eventually(t, daemon.StartLimit, "the zone serves "+want, func() bool {
		reply, err := mdns.Exchange(new(mdns.Msg).SetQuestion(name+".", mdns.TypeTXT), server)
		return err == nil && len(reply.Answer) == 1 && strings.Join(reply.Answer[0].(*mdns.TXT).Txt, "") == want
	})
}

// TestManagedRecords takes over a record, changes it, undoes that and stops it.
func TestManagedRecords(t *testing.T) {
	const mail = "\nexample.com. MX 0 mx.example.com.\nmx.example.com. A 192.0.2.1\n"
	each(t, `_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:dmarc@example.com"`+mail, func(t *testing.T, in *installation) {
		prepare(in)
		in.do("domain", "add", "--team", "crew", "example.com")
		if r := in.run(command{args: []string{"record", "publish", "--team", "crew", "example.com", "dmarc"}}); r.Status != 1 || !strings.Contains(r.Stderr, "DMARCD_ZONE") {
			t.Errorf("without a zone: got status %d and %q, want 1 and the setting", r.Status, r.Stderr)
		}
		s := in.start(zoneSettings...)
		server, change := s.dnsServer(), in.record
		served := func(name, want string) {
			t.Helper()
			awaitText(t, server, name, want)
		}
		const before = "v=DMARC1; p=none; rua=mailto:dmarc@example.com"
		first := change("publish", "example.com", "dmarc")
		if first.Record != before || first.Version != 1 || first.State != "elsewhere" || first.Name != "_dmarc.example.com" || !strings.HasSuffix(first.Target, ".dns.example.net") {
			t.Errorf("got %+v, want the record that was there, at a name in the zone", first)
		}
		served(first.Target, before)
		in.setZone("_dmarc.example.com. CNAME " + first.Target + ".\n" + first.Target + `. TXT "` + before + `"` + mail)
		if now := change("list", "example.com"); now.State != "managed" || now.Target != first.Target {
			t.Errorf("with the CNAME record: got %+v, want it managed", now)
		}
		const stricter = "v=DMARC1; p=quarantine; rua=mailto:dmarc@example.com"
		change("publish", "example.com", "dmarc", stricter, "--base", "1", "--reason", "ready")
		served(first.Target, stricter)
		for name, args := range map[string][]string{
			"an old base": {"record", "publish", "--team", "crew", "example.com", "dmarc", before, "--base", "1"},
			"no record":   {"record", "publish", "--team", "crew", "example.com", "dmarc", "hello"},
			"no domain":   {"record", "publish", "--team", "crew", "other.example", "dmarc", before},
			"not managed": {"record", "stop", "--team", "crew", "example.com", "tls_rpt"},
		} {
			if r := in.run(command{args: args}); r.Status != 1 || strings.Count(r.Stderr, "\n") != 1 {
				t.Errorf("%s: got status %d and %q, want 1 and one line", name, r.Status, r.Stderr)
			}
		}
		if undone := change("undo", "example.com", "dmarc"); undone.Version != 3 || undone.Record != before {
			t.Errorf("got %+v, want version 3 with the first record", undone)
		}
		served(first.Target, before)
		if history := in.do("record", "history", "--team", "crew", "example.com"); !strings.Contains(history, "undo of version 2") || !strings.Contains(history, "ready") {
			t.Errorf("got the history\n%s", history)
		}
		s.Kill()
		again := in.start("DMARCD_ZONE=dns.example.net", "DMARCD_ZONE_LISTEN="+server, "DMARCD_ZONE_NAMESERVERS=ns1.dns.example.net=127.0.0.1,ns2.example.org")
		again.await()
		served(first.Target, before)
		in.do("record", "stop", "--team", "crew", "example.com", "dmarc")
		served(first.Target, before) // for 90 days
		if second := change("publish", "example.com", "dmarc", stricter); second.Target == first.Target {
			t.Errorf("got %+v, want another name than before the stop", second)
		}
		again.Stop()
	})
}

// TestManagedSPFRecord publishes an SPF record, leads to it from the domain, and has it resolved again while what it
// includes changes.
func TestManagedSPFRecord(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		prepare(in)
		in.do("domain", "add", "--team", "crew", "example.com")
		setZone := func(included, own string) {
			in.setZone(`spf.example. TXT "v=spf1 ` + included + ` -all"` + "\n" + own)
		}
		setZone("ip4:192.0.2.0/28", "")
		s := in.start(zoneSettings...)
		server := s.dnsServer()
		for record, want := range map[string]string{
			"v=spf1 include:none.example -all": "none.example does not exist", "v=spf1 include:spf.example ~ip4:192.0.2.1": "an include can only match or not",
		} {
			r := in.run(command{args: []string{"record", "publish", "--team", "crew", "example.com", "spf", record}})
			if r.Status != 1 || !strings.Contains(r.Stderr, want) || strings.Count(r.Stderr, "\n") != 1 {
				t.Errorf("%s: got status %d and %q, want 1 and %s", record, r.Status, r.Stderr, want)
			}
		}
		answer := s.send(changing(http.MethodPut, "/domains/example.com/records/spf", in.newToken("crew", "--scope", "publish"), `{"base":0,"record":"v=spf1 include:none.example -all"}`))
		answer.wantStatus(t, http.StatusUnprocessableEntity)
		if body := string(answer.body); !strings.Contains(body, `"field":"record"`) || !strings.Contains(body, "none.example does not exist") {
			t.Errorf("got %s, want the field and the reason", body)
		}
		const source = "v=spf1 include:spf.example ip4:198.51.100.0/24 -all"
		first := in.record("publish", "example.com", "spf", source)
		const flat = "v=spf1 ip4:192.0.2.0/28 ip4:198.51.100.0/24 -all"
		if first.State != "not_yet" || strings.Join(first.Served, "") != flat || !strings.Contains(first.Effect, "1 record with 272 IPv4 addresses") {
			t.Errorf("got %+v, want addresses, not published yet", first)
		}
		awaitText(t, server, first.Target, flat)
		refreshed := func(included, want, note string) {
			t.Helper()
			setZone(included, `example.com. TXT "v=spf1 redirect=`+first.Target+`"`)
			musttest.Get(in.db.SQL(t).ExecContext(t.Context(), "UPDATE domains SET spf_due_at = 1"))(t)
			daemon.Eventually(t, daemon.StartLimit, "the record is refreshed", func() bool {
				now := in.record("list", "example.com")
				return now.State == "managed" && strings.Join(now.Served, "") == want && strings.HasPrefix(now.Note, note) && (note != "" || now.Note == "")
			})
			awaitText(t, server, first.Target, want)
		}
		const grown = "v=spf1 ip4:192.0.2.0/28 ip4:192.0.2.17 ip4:198.51.100.0/24 -all"
		refreshed("ip4:192.0.2.0/28 ip4:192.0.2.17", grown, "")
		refreshed("ip4:192.0.0.0/16", grown, "A change waits for a person: ")
		in.record("publish", "example.com", "spf", source)
		refreshed("ip4:192.0.0.0/16", "v=spf1 ip4:192.0.0.0/16 ip4:198.51.100.0/24 -all", "")
		in.do("record", "stop", "--team", "crew", "example.com", "spf")
		awaitText(t, server, first.Target, "v=spf1 ip4:192.0.0.0/16 ip4:198.51.100.0/24 -all") // for 90 days
		s.Stop()
	})
}

// recordRequests returns the requests about a managed record, the deletion last.
func recordRequests(domain, token string) []request {
	path := "/domains/" + domain + "/records"
	return []request{
		changing(http.MethodGet, path, token, ""),
		changing(http.MethodPut, path+"/dmarc", token, `{"base":0,"record":"v=DMARC1; p=none"}`),
		changing(http.MethodGet, path+"/dmarc/versions", token, ""),
		changing(http.MethodGet, "/domains/"+domain+"/proposals", token, ""),
		changing(http.MethodGet, "/domains/"+domain+"/target", token, ""),
		changing(http.MethodPut, "/domains/"+domain+"/target", token, `{"kind":"rfc2136","server":"127.0.0.1:1","key":"a:`+updateSecret+`"}`),
		changing(http.MethodDelete, "/domains/"+domain+"/target", token, ""),
		changing(http.MethodDelete, path+"/dmarc", token, ""),
	}
}

// TestAnswersOfManagedRecords causes the documented answers about managed records.
func TestAnswersOfManagedRecords(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve(zoneSettings...)
		s.add("example.com")
		cast := newErrorFixture(in)
		in.do("team", "create", "other", "--api")
		publisher := in.newToken("default", "--scope", "publish")
		want := func(r request, status int) {
			t.Helper()
			s.send(r).wantStatus(t, status)
		}
		for token, status := range map[string]int{
			"": http.StatusUnauthorized, cast.denied: http.StatusForbidden, in.newToken("other", "--scope", "publish"): http.StatusNotFound,
		} {
			for _, r := range recordRequests("example.com", token) {
				want(r, status)
			}
		}
		for _, r := range recordRequests("example.com", publisher) {
			r.path += "?unknown=1"
			want(r, http.StatusUnprocessableEntity)
		}
		publish := recordRequests("example.com", publisher)[1]
		for _, r := range []request{publish, recordRequests("example.com", publisher)[5]} {
			for body, status := range map[string]int{"{": http.StatusBadRequest, tooLarge: http.StatusRequestEntityTooLarge, "[]": http.StatusUnprocessableEntity} {
				want(changing(r.method, r.path, publisher, body), status)
			}
			r.header = map[string]string{"Content-Type": "text/plain"}
			want(r, http.StatusUnsupportedMediaType)
		}
		want(publish, http.StatusOK)
		want(publish, http.StatusConflict)
		in.do("record", "approval", "--team", "default", "required")
		want(changing(publish.method, publish.path, publisher, `{"base":1,"record":"v=DMARC1; p=reject"}`), http.StatusAccepted)
		if got := in.do("record", "list", "--team", "default", "example.com"); strings.Count(got, "\n") != 3 || !strings.Contains(got, "proposed") {
			t.Errorf("got the list\n%s\nwant the record and its proposal", got)
		}
		in.do("record", "approval", "--team", "default", "optional")
		own := startOwnKnot(t)
		target := changing(http.MethodPut, "/domains/example.com/target", publisher, own.target())
		if a := s.send(target); a.status != http.StatusOK || strings.Contains(string(a.body), updateSecret) {
			t.Errorf("got %d %s, want 200 without the key", a.status, a.body)
		}
		const spf = "v=spf1 ip4:192.0.2.0/24 -all"
		spfPath := "/domains/example.com/records/spf"
		want(changing(http.MethodPut, spfPath, publisher, `{"base":0,"record":"`+spf+`"}`), http.StatusOK)
		if got := textOver("tcp", own.address, "example.com"); got != spf {
			t.Errorf("the server has %q, want the SPF record as it was written", got)
		}
		want(changing(http.MethodDelete, spfPath, publisher, ""), http.StatusNoContent)
		for _, path := range []string{"/domains/example.com/records", "/domains/example.com/records/dmarc/versions", "/domains/example.com/proposals", "/domains/example.com/target"} {
			a := s.get(path)
			a.wantStatus(t, http.StatusOK)
			s.ifNoneMatch(path, a.header.Get("ETag")).wantStatus(t, http.StatusNotModified)
		}
		for _, r := range recordRequests("example.com", publisher)[6:] {
			want(r, http.StatusNoContent)
		}
	})
}
