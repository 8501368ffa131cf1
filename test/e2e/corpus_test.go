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
	reports map[corpusKey]corpusReport // distinct aggregate reports
	kept    map[string]int             // number of reports by kind
	refused int                        // number of files without a report
}

func readCorpus(t *testing.T) corpusIndex {
	t.Helper()
	index := corpusIndex{reports: map[corpusKey]corpusReport{}, kept: map[string]int{}}
	for _, file := range corpustest.Reports[json.RawMessage](t, "aggregate", "failure", "tlsrpt") {
		switch {
		case !file.Accepted():
			index.refused++
		case file.Kind != "aggregate":
			index.kept[file.Kind]++
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
				index.kept["aggregate"]++
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
		kept := index.kept["aggregate"] + index.kept["failure"] + index.kept["tlsrpt"]
		if sum := got.Stored + got.Unclaimed + got.Replaced + got.Duplicate; sum != kept {
			t.Errorf("got %d reports want %d: %+v", sum, kept, got)
		}
		if got.Rejected != index.refused {
			t.Errorf("got %d rejected want %d", got.Rejected, index.refused)
		}
		if listed := len(s.rejected()); listed != index.refused {
			t.Errorf("got a list of %d rejected want %d", listed, index.refused)
		}
		again := in.bringIn(1, folders...)
		if again.Duplicate != kept || again.Rejected != index.refused || again.Messages != 0 {
			t.Errorf("imported again: got %+v want %d duplicates", again, kept)
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
