package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// world contains one domain of each kind that the page shows.
const world = `
good.example.            SOA ns.good.example. admin.good.example. 1 7200 3600 1209600 300
good.example.            NS  ns.good.example.
good.example.            MX  10 mx.good.example.
good.example.            TXT "v=spf1 mx -all"
mx.good.example.         A   192.0.2.1
_dmarc.good.example.     TXT "v=DMARC1; p=reject; rua=mailto:dmarc@good.example"
default._domainkey.good.example. TXT "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
_smtp._tls.good.example. TXT "v=TLSRPTv1; rua=mailto:tls@good.example"

broken.example.          SOA ns.broken.example. admin.broken.example. 1 7200 3600 1209600 300
broken.example.          NS  ns.broken.example.
broken.example.          MX  10 gone.broken.example.
broken.example.          TXT "v=spf1 include:_spf.gone.example include:a.broken.example +all"
a.broken.example.        TXT "v=spf1 mx a ptr include:b.broken.example -all"
b.broken.example.        TXT "v=spf1 a:x1.example a:x2.example a:x3.example a:x4.example a:x5.example a:x6.example -all"
_dmarc.broken.example.   TXT "v=DMARC1; p=reject; sp=rejct; rua=mailto:dmarc@elsewhere.example"
s1._domainkey.broken.example. TXT "v=DKIM1; p="

parked.example.          SOA ns.parked.example. admin.parked.example. 1 7200 3600 1209600 300
parked.example.          NS  ns.parked.example.
parked.example.          MX  0 .
parked.example.          TXT "v=spf1 -all"
_dmarc.parked.example.   TXT "v=DMARC1; p=reject; rua=mailto:dmarc@good.example"
parked.example._report._dmarc.good.example. TXT "v=DMARC1"
`

// installation returns a folder for an installation, and a function that runs commands with it. It
// ends the test unless a command has that status and, if it is not "", that output.
func installation(t *testing.T) (folder string, run func(wantStatus int, wantStdout string, args ...string) string) {
	t.Helper()
	server := resolvertest.Start(t, "")
	folder = t.TempDir()
	return folder, func(wantStatus int, wantStdout string, args ...string) string {
		t.Helper()
		args = append(args, "--data="+folder, "--database="+filepath.Join(folder, "dmarcd.db"))
		status, stdout, stderr := runProgram(t, server, "", args...)
		if status != wantStatus || wantStdout != "" && stdout != wantStdout {
			t.Fatalf("%v: got status %d, %q and %q, want %d and %q", args, status, stdout, stderr, wantStatus, wantStdout)
		}
		return stdout
	}
}

// runProgram runs a command line against a DNS server and returns what it printed.
func runProgram(t *testing.T, server *resolvertest.Server, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return runWith(t, []string{"DMARCD_DNS=" + server.Addr()}, stdin, args...)
}

// runWith runs a command line in an environment. The data folder is that of the database.
func runWith(t *testing.T, environ []string, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	for _, arg := range args {
		if file, ok := strings.CutPrefix(arg, "--database="); ok && filepath.IsAbs(file) {
			environ = append(slices.Clone(environ), "DMARCD_DATA="+filepath.Dir(file))
		}
	}
	var out, errors bytes.Buffer
	p := &program{in: strings.NewReader(stdin), out: &out, err: &errors, environ: environ}
	return p.run(t.Context(), args), out.String(), errors.String()
}

func TestCheckPage(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, world)
	for _, tt := range []struct {
		name, domain string
		status       int
	}{
		{"a good domain", "good.example", exitDone},
		{"a broken domain", "broken.example", exitProblem},
		{"a parked domain", "parked.example", exitDone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, got, stderr := runProgram(t, server, "", "check", tt.domain)
			if status != tt.status {
				t.Errorf("got status %d, want %d; standard error: %s", status, tt.status, stderr)
			}
			goldentest.Check(t, "testdata/check-"+tt.domain+".golden", got)
			checkWidth(t, got)
		})
	}
}

// checkWidth checks that lines have at most 80 columns, except records, and that they fit
// on one screen.
func checkWidth(t *testing.T, page string) {
	t.Helper()
	lines := strings.Split(page, "\n")
	for _, line := range lines {
		record := strings.Contains(line, ". TXT ") || strings.Contains(line, ". MX ")
		if n := utf8.RuneCountInString(line); n > pageWidth && !record {
			t.Errorf("got a line of %d columns, want at most %d: %s", n, pageWidth, line)
		}
	}
	const screen = 56
	if len(lines) > screen {
		t.Errorf("got %d lines, want at most %d", len(lines), screen)
	}
}

func TestCheckExitStatus(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, world)
	server.SetFault("_dmarc.silent.example", resolvertest.ServFail)
	for _, tt := range []struct {
		name  string
		args  []string
		stdin string
		want  int
	}{
		{"nothing bad", []string{"good.example", "parked.example"}, "", exitDone},
		{"something bad", []string{"good.example", "broken.example"}, "", exitProblem},
		{"could not look", []string{"silent.example"}, "", exitFailed},
		{"could not look beats bad", []string{"broken.example", "silent.example"}, "", exitFailed},
		{"no domain name", []string{"not_a_name"}, "", exitFailed},
		{"no domain name beats good", []string{"good.example", "localhost"}, "", exitFailed},
		{"no arguments", nil, "", exitFailed},
		{"names from standard input", []string{"-"}, "good.example # fine\n\nbroken.example\n", exitProblem},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _, stderr := runProgram(t, server, tt.stdin, append([]string{"check"}, tt.args...)...)
			if got != tt.want {
				t.Errorf("got status %d, want %d; standard error: %s", got, tt.want, stderr)
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, world)
	_, out, _ := runProgram(t, server, "", "check", "--json", "parked.example", "broken.example", "good.example")
	var got []wire.Check
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("got %v, want an array: %s", err, out)
	}
	var order []string
	for _, c := range got {
		order = append(order, c.Domain)
	}
	if diff := cmp.Diff([]string{"parked.example", "broken.example", "good.example"}, order); diff != "" {
		t.Errorf("the order of the checks (-want +got):\n%s", diff)
	}
	if regexp.MustCompile(`"(queries|destinations|tree|terms|dkim|aliases|mx|addresses|hosts|records|findings)": null`).MatchString(out) {
		t.Errorf("got a list that is null in %s, want empty lists", out)
	}
}

func TestCheckManyInOneLineEach(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, world)
	var names strings.Builder
	for _, letter := range strings.Split("abcdefghijk", "") {
		names.WriteString(letter + ".good.example\n")
	}
	_, out, _ := runProgram(t, server, names.String(), "check", "-")
	if got, want := strings.Count(out, "\n"), 11; got != want {
		t.Errorf("got %d lines, want %d:\n%s", got, want, out)
	}
}

// TestCheckLinesFit checks that each check is one line that fits, even with a long name.
func TestCheckLinesFit(t *testing.T) {
	t.Parallel()
	for _, labels := range []int{1, 7, 12} {
		domain := strings.Repeat("label.", labels) + "example"
		var out bytes.Buffer
		lines := &checkLines{&checkPage{out: &out}}
		musttest.Do(t, lines.print(facts.Check{Conclusive: true, Grade: "F", Facts: &facts.Facts{Domain: domain}}))
		got := strings.TrimSuffix(out.String(), "\n")
		if n := utf8.RuneCountInString(got); n > max(pageWidth, len(domain)+3) || !strings.Contains(got, domain) {
			t.Errorf("got %d columns, want the name and no more than fits: %s", n, got)
		}
	}
}

// TestCheckPageCounts checks the number of omitted findings, also if the next step is
// listed before it is explained.
func TestCheckPageCounts(t *testing.T) {
	t.Parallel()
	var findings []dmarcd.Finding
	for _, id := range []string{"a.a", "b.b", "c.c"} {
		findings = append(findings, dmarcd.Finding{ID: id, Level: dmarcd.LevelError, Points: 1, Fix: "Fix it."})
	}
	next := dmarcd.Finding{ID: "d.d", Level: dmarcd.LevelWarning, Points: 9, Fix: "Fix it."}
	findings = append(findings, next, dmarcd.Finding{ID: "e.e", Level: dmarcd.LevelInfo})
	var out bytes.Buffer
	page := &checkPage{out: &out}
	musttest.Do(t, page.print(facts.Check{Conclusive: true, Facts: &facts.Facts{Domain: "example.com"}, Findings: findings, Next: &next}))
	if want := "1 more finding is informational"; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %q in it", out.String(), want)
	}
}

func TestCheckVerboseShowsEverything(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, world)
	_, short, _ := runProgram(t, server, "", "check", "broken.example")
	_, long, _ := runProgram(t, server, "", "check", "--verbose", "broken.example")
	for _, only := range []string{"INFO  dkim.revoked", "a:x6.example"} {
		if strings.Contains(short, only) || !strings.Contains(long, only) {
			t.Errorf("got %q in %t of the short and %t of the long page, want it in the long one only",
				only, strings.Contains(short, only), strings.Contains(long, only))
		}
	}
}

func TestCheckSelector(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, world)
	status, out, _ := runProgram(t, server, "", "check", "--selector", "mine", "good.example")
	if status != exitProblem || !strings.Contains(out, "dkim.selector_missing") {
		t.Errorf("got status %d and %s, want the selector told as missing", status, out)
	}
}

// TestCheckColours checks that colours do not change the text.
func TestCheckColours(t *testing.T) {
	t.Parallel()
	check := facts.Check{
		Conclusive: true, Grade: "C", Facts: &facts.Facts{Domain: "example.com"},
		Findings: []dmarcd.Finding{{ID: "spf.ptr", Level: dmarcd.LevelWarning, What: "The record says \x1b[2J.", Why: "It matters.", Fix: "Fix it.", RFC: "RFC 7208"}},
	}
	var dull, coloured bytes.Buffer
	for _, page := range []*checkPage{{out: &dull}, {out: &coloured, colours: true}} {
		musttest.Do(t, page.print(check))
	}
	if strings.Contains(dull.String(), "\x1b") {
		t.Errorf("got %q, want no colours", dull.String())
	}
	stripped := strings.NewReplacer(red, "", green, "", yellow, "", blue, "", bold, "", plain, "").Replace(coloured.String())
	if stripped == coloured.String() || stripped != dull.String() {
		t.Errorf("got %q, want %q with colours", coloured.String(), dull.String())
	}
}

// TestCheckStatesWhichLookupsFailed checks that a failed lookup is not described as an answer.
func TestCheckStatesWhichLookupsFailed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		facts facts.Facts
		want  [][3]string
	}{
		{"all", facts.Facts{
			DMARC: facts.DMARC{Status: "inconclusive"}, SPF: facts.SPF{Status: "inconclusive"},
			DKIM: facts.DKIM{Namespace: "unknown", Probed: 37, Unanswered: 37},
		}, [][3]string{
			{"DMARC", "inconclusive", "the lookup failed; the policy is unknown"},
			{"SPF", "inconclusive", "the lookup failed"},
			{"DKIM", "inconclusive", "the lookups of all 37 common selectors failed"},
		}},
		{"some", facts.Facts{
			DMARC: facts.DMARC{Status: "none"}, SPF: facts.SPF{Status: "none"},
			DKIM: facts.DKIM{Namespace: "exists", Probed: 37, Unanswered: 1},
		}, [][3]string{
			{"DMARC", "none", "no policy applies"},
			{"SPF", "none", ""},
			{"DKIM", "not found", "37 common selectors checked, of which 1 lookup failed; there may be others"},
		}},
	} {
		if diff := cmp.Diff(tt.want, partRows(tt.facts)[:3]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestCheckWhenEveryLookupFails(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, world)
	server.SetFault("*", resolvertest.ServFail)
	status, stdout, stderr := runProgram(t, server, "", "check", "fail.example")
	if status != exitFailed || strings.Contains(stdout, "no policy applies") || strings.Contains(stdout, "not found") || !strings.Contains(stdout, "common selectors failed") {
		t.Errorf("got status %d, %q and:\n%s\nwant that the lookups failed", status, stderr, stdout)
	}
}

// TestKnowsAuthorities checks that certificates of public authorities verify.
func TestKnowsAuthorities(t *testing.T) {
	t.Parallel()
	authorities, err := x509.SystemCertPool()
	if err != nil || authorities.Equal(x509.NewCertPool()) {
		t.Errorf("got no authorities (%v), want some", err)
	}
}

// TestKnowsAuthoritiesOnItsOwn checks the same without system roots. It needs its own
// process, because roots are loaded once.
func TestKnowsAuthoritiesOnItsOwn(t *testing.T) {
	t.Parallel()
	none := t.TempDir()
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKnowsAuthorities$")
	again.Env = []string{"SSL_CERT_FILE=" + none + "/none.pem", "SSL_CERT_DIR=" + none}
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("got %v, want some:\n%s", err, out)
	}
}
