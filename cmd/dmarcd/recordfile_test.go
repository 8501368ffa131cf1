package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store"
)

func TestRecordsAreFiles(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `example.com. TXT "v=spf1 -all"`)
	file := filepath.Join(t.TempDir(), "dmarcd.db")
	for _, args := range [][]string{{"team", "create", "acme"}, {"domain", "add", "--team", "acme", "example.com"}} {
		if status, _, stderr := runProgram(t, server, "", append(args, "--database="+file)...); status != exitDone {
			t.Fatal(stderr)
		}
	}
	s := musttest.Get(store.Open(t.Context(), file, store.Options{}))(t)
	musttest.Do(t, errors.Join(s.SetReportDomain(t.Context(), "reports.example.net"), s.Close()))
	runProgram(t, server, "", "domain", "verify", "--team", "acme", "example.com", "--database="+file) // the next action is to publish a record
	for _, tt := range []struct {
		line   string
		status int
		want   string // in the output, or in the error
	}{
		{"domain setup --team acme example.com", exitDone, "_smtp._tls.example.com"},
		{"domain setup --team acme --json example.com", exitDone, `"purpose": "tls_rpt"`},
		{"domain setup --team acme --format bind example.com", exitDone, `_dmarc.example.com. 3600 IN TXT "v=DMARC1; p=none; rua=mailto:`},
		{"domain setup --team acme --format dnscontrol --origin reports.example.net example.com", exitDone, `TXT("example.com._report._dmarc", "v=DMARC1"`},
		{"domain setup --team acme --format bind --origin example.org example.com", exitProblem, "no record to publish in the zone example.org"},
		{"domain setup --team acme --origin example.org example.com", exitFailed, "--origin needs --format"},
		{"domain setup --team acme --format csv example.com", exitFailed, "must be one of bind, terraform"},
		{"domain setup --team acme --format bind --json example.com", exitFailed, "use only one of --format and --json"},
		{"advise --team acme --format octodns example.com", exitDone, `"_dmarc":`},
		{"advise --team acme --format octodns", exitFailed, "--format needs a domain"},
		{"check --format terraform example.com", exitProblem, `resource "dns_txt_record_set" "txt__dmarc_example_com"`},
	} {
		args := append(strings.Fields(tt.line), "--database="+file)
		status, stdout, stderr := runProgram(t, server, "", args...)
		if status != tt.status || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("%s: got status %d, %s%s; want %d and %q", tt.line, status, stdout, stderr, tt.status, tt.want)
		}
	}
}
