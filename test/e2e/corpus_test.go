package e2e_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// corpusReport is an aggregate report in the index of the corpus.
type corpusReport struct {
	OrgName   string `json:"org_name"`
	ReportID  string `json:"report_id"`
	Domain    string `json:"domain"`
	Begin     int64  `json:"begin"`
	End       int64  `json:"end"`
	Records   int    `json:"records"`
	Messages  int64  `json:"sum_count"`
	Compliant int64  `json:"dmarc_compliant_count"`
}

// corpusKey identifies a report.
type corpusKey struct {
	org, id, domain string
	begin, end      int64
}

func (r corpusReport) key() corpusKey {
	return corpusKey{
		strings.ToLower(strings.TrimSpace(r.OrgName)), strings.Trim(r.ReportID, "<> \n\t"),
		strings.ToLower(strings.Trim(r.Domain, ". \n\t")), r.Begin, r.End,
	}
}

// corpusIndex is the expected result of an import of the corpus.
type corpusIndex struct {
	reports  map[corpusKey]corpusReport // distinct aggregate reports
	stored   map[string]int             // number of reports by kind
	rejected int                        // number of files without a report
}

func readCorpus(t *testing.T) corpusIndex {
	t.Helper()
	index := corpusIndex{reports: map[corpusKey]corpusReport{}, stored: map[string]int{}}
	for _, file := range corpustest.Reports[json.RawMessage](t, "aggregate", "failure", "tlsrpt") {
		switch {
		case !file.Accepted():
			index.rejected++
		case file.Kind != "aggregate":
			index.stored[file.Kind]++
		default:
			var facts struct {
				corpusReport
				Several []corpusReport `json:"reports"`
			}
			musttest.Do(t, json.Unmarshal(file.Facts, &facts))
			if len(facts.Several) == 0 {
				facts.Several = []corpusReport{facts.corpusReport}
			}
			for _, r := range facts.Several {
				index.stored["aggregate"]++
				index.reports[r.key()] = r
			}
		}
	}
	return index
}

// TestCorpusIsCounted imports the corpus, if DMARCD_CORPUS is set, and compares the
// counts with its index.
func TestCorpusIsCounted(t *testing.T) {
	root := corpustest.Dir(t)
	index := readCorpus(t)
	folders := []string{filepath.Join(root, "aggregate"), filepath.Join(root, "failure"), filepath.Join(root, "tlsrpt")}
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		got := in.bringIn(1, folders...)
		stored := index.stored["aggregate"] + index.stored["failure"] + index.stored["tlsrpt"]
		if sum := got.Stored + got.Unclaimed + got.Replaced + got.Duplicate; sum != stored {
			t.Errorf("got %d reports want %d: %+v", sum, stored, got)
		}
		if got.Rejected != index.rejected {
			t.Errorf("got %d rejected want %d", got.Rejected, index.rejected)
		}
		if listed := len(s.rejected()); listed != index.rejected {
			t.Errorf("got a list of %d rejected want %d", listed, index.rejected)
		}
		again := in.bringIn(1, folders...)
		if again.Duplicate != stored || again.Rejected != index.rejected || again.Messages != 0 {
			t.Errorf("imported again: got %+v want %d duplicates", again, stored)
		}

		names := map[string]bool{}
		var messages, compliant int64
		for key, r := range index.reports {
			names[key.domain] = true
			messages, compliant = messages+r.Messages, compliant+r.Compliant
		}
		in.addMany(slices.SortedFunc(maps.Keys(names), cmp.Compare))
		s.wantCounted("the whole corpus", "", compliant, messages-compliant)
		wantCorpusReports(t, s, index)
		s.Stop()
		in.healthy()
	})
}

// wantCorpusReports compares each stored aggregate report with the index.
func wantCorpusReports(t *testing.T, s *server, index corpusIndex) {
	t.Helper()
	found := 0
	for _, r := range s.reports("?kind=aggregate") {
		if r.Replaced {
			continue
		}
		full := readAs[struct {
			Report corpusReport `json:"report"`
		}](t, s.get("/insights/reports/"+r.ID)).Report
		want, ok := index.reports[full.key()]
		if !ok {
			t.Errorf("got a report %+v that was never sent", full)
			continue
		}
		found++
		if r.Messages != want.Messages || r.Compliant != want.Compliant {
			t.Errorf("%+v: got %d messages, %d compliant want %d and %d", want.key(), r.Messages, r.Compliant, want.Messages, want.Compliant)
		}
	}
	if found != len(index.reports) {
		t.Errorf("got %d aggregate reports want %d", found, len(index.reports))
	}
}

// TestParseReadsEveryWrapping parses a report from files and standard input, without a
// database.
func TestParseReadsEveryWrapping(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		folder := t.TempDir()
		report := about("example.com", "42", 7, 3)
		const facts = "\taggregate\tReporter Inc.\t42\texample.com\t1794614400\t1794700799\t2\t10\t7\n"
		var want string
		args := []string{"parse", "--summary"}
		for _, w := range wrappings() {
			path := filepath.Join(folder, w.name)
			writeFiles(t, folder, w.name, w.wrap(report.xml()))
			args = append(args, path)
			want += path + facts
		}
		if r := in.run(command{args: args}); r.Status != 0 || r.Stdout != want {
			t.Errorf("got status %d and\n%swant 0 and\n%s", r.Status, r.Stdout, want)
		}
		r := in.run(command{args: []string{"parse", "--json", "-"}, stdin: gzipped(report.xml())})
		var parsed []corpusReport
		if err := json.Unmarshal([]byte(r.Stdout), &parsed); err != nil || len(parsed) != 1 {
			t.Fatalf("got %v and %d reports want one", err, len(parsed))
		}
		if got := parsed[0]; got.ReportID != "42" || got.Messages != 10 || got.Compliant != 7 || got.Records != 2 {
			t.Errorf("got %+v want what was sent", got)
		}

		writeFiles(t, folder, "note.txt", "no report")
		rejected := in.run(command{args: []string{"parse", "--summary", filepath.Join(folder, "note.txt"), filepath.Join(folder, "report.xml")}})
		if rejected.Status != 1 || rejected.Stdout != filepath.Join(folder, "report.xml")+facts || !strings.Contains(rejected.Stderr, "note.txt") {
			t.Errorf("with something that is no report: got status %d, %q and %q want 1, the report, and the reason",
				rejected.Status, rejected.Stdout, rejected.Stderr)
		}
		if missing := in.run(command{args: []string{"parse", filepath.Join(folder, "missing")}}); missing.Status != 2 {
			t.Errorf("a file that is not there: got status %d want 2", missing.Status)
		}
	})
}
