package main

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestZone shows a zone with a name that its database did not have, and drops it.
func TestZone(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	db := storetest.SQLite(t)
	s := db.Open(t, store.Options{})
	folder := t.TempDir()
	run := func(zone bool, args ...string) (int, string, string) {
		args = append(args, "--database="+db.DSN, "--data="+folder)
		var out, problems strings.Builder
		environ := []string{"DMARCD_DNS=" + server.Addr()}
		if zone {
			environ = append(environ, "DMARCD_ZONE=dns.example.net", "DMARCD_ZONE_NAMESERVERS=ns1.example.org,ns2.example.org",
				"DMARCD_ZONE_SECONDARIES=127.0.0.1:9=transfer:MDEyMzQ1Njc4OWFiY2RlZg==")
		}
		status := (&program{in: strings.NewReader(""), out: &out, err: &problems, environ: environ}).run(t.Context(), args)
		return status, out.String(), problems.String()
	}
	wants := func(what string, status int, got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s: got status %d and\n%s\nwant %q", what, status, got, part)
			}
		}
	}
	status, _, stderr := run(false, "zone")
	wants("without a zone", status, stderr, "DMARCD_ZONE")
	status, _, stderr = run(true, "zone")
	wants("before the first start", status, stderr, "start the daemon")
	serial := musttest.Get(s.OpenZone(t.Context(), "dns.example.net", ""))(t)
	_, _, err := s.ContinueZone(t.Context(), serial, []store.ZoneName{{Label: "lost", Records: []store.ZoneRecord{{Type: 16, Data: "v=DMARC1; p=none"}}}})
	musttest.Do(t, err)
	status, stdout, stderr := run(true, "zone")
	wants("with a name", status, stdout+stderr, "dns.example.net", "1, 0 of them retired", "ns1.example.org", "secondary 127.0.0.1:9", "there is none", "dmarcd zone drop")
	status, stdout, _ = run(true, "zone", "--json")
	wants("JSON", status, stdout, `"orphaned": 1`, `"serial": null`)
	status, stdout, _ = run(true, "doctor")
	wants("doctor", status, stdout, "since a backup was restored, are served: 1.", "The secondary 127.0.0.1:9 does not serve the zone", "cannot serve a start without the database")
	status, stdout, _ = run(true, "zone", "drop")
	wants("drop", status, stdout, "1 name dropped.")
	if status, stdout, _ = run(true, "zone"); status != exitDone || !strings.Contains(stdout, "0, 0 of them") {
		t.Errorf("after that: got status %d and\n%s", status, stdout)
	}
	if status, _, stderr = run(true, "team", "create", "acme"); status != exitDone {
		t.Fatal(stderr)
	}
	if status, _, stderr = run(true, "domain", "add", "--team=acme", "example.com"); status != exitDone {
		t.Fatal(stderr)
	}
	change := func(args ...string) []string { return append([]string{"record"}, append(args, "--team=acme")...) }
	status, stdout, stderr = run(true, change("publish", "example.com", "dmarc", "v=DMARC1; p=none")...)
	wants("published", status, stdout+stderr, "Publish this record: _dmarc.example.com. CNAME ")
	status, _, stderr = run(true, change("publish", "example.com", "dmarc", "v=DMARC1; p=reject", "--base=0")...)
	wants("another base", status, stderr, "another version than 0 is published", "dmarcd record list")
	status, _, stderr = run(true, change("stop", "example.com", "dmarc")...)
	wants("stopped", status, stderr, "for 90 days", `The published record: _dmarc.example.com. 300 IN TXT "v=DMARC1; p=none"`)
	status, _, stderr = run(true, change("stop", "example.com", "dmarc")...)
	wants("stopped again", status, stderr, "no managed record of the kind dmarc")
	if status, _, stderr = run(true, "zone", "dorp"); status != exitFailed || !strings.Contains(stderr, "drop") {
		t.Errorf("got status %d and %q", status, stderr)
	}
}
