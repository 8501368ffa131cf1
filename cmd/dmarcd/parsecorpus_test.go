package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/corpustest"
)

// corpusFacts maps names to facts, from the index or the command.
type corpusFacts map[string]any

// notReported lists facts of the index that the command does not print: they describe the
// file, or are the same for all reports.
var notReported = []string{
	"container", "root", "mail", "member", "oddities", "json", "sample_part", "is_dmarc_failure_report",
	"not_wellformed", "facts_from", "dmarc_compliant_count_if_only_lower_case_pass_counts",
}

// TestParseCorpus compares the output for corpus files with the index, if DMARCD_CORPUS is
// set.
func TestParseCorpus(t *testing.T) {
	t.Parallel()
	for _, r := range corpustest.Reports[corpusFacts](t, "aggregate", "failure", "tlsrpt") {
		t.Run(r.File, func(t *testing.T) {
			t.Parallel()
			checkCorpusReport(t, r)
		})
	}
}

func checkCorpusReport(t *testing.T, r corpustest.Report[corpusFacts]) {
	t.Helper()
	file := r.Path()
	status, out, stderr := runParse(t, "", "--json", file)
	var got []corpusFacts
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("got error %v, want an array", err)
	}
	if !r.Accepted() {
		if status != exitProblem || len(got) > 0 || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, file+": ") {
			t.Errorf("got status %d, %d reports and %q, want %d, none and one reason", status, len(got), stderr, exitProblem)
		}
		return
	}
	if status != exitDone || stderr != "" {
		t.Errorf("got status %d and %q, want %d", status, stderr, exitDone)
	}
	want := []corpusFacts{r.Facts}
	if several, ok := r.Facts["reports"].([]any); ok {
		want = nil
		for _, facts := range several {
			want = append(want, facts.(map[string]any))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("got %d reports, want %d", len(got), len(want))
	}
	for i := range want {
		checkCorpusFacts(t, got[i], want[i])
	}
}

// checkCorpusFacts checks that the command prints every fact of the index.
func checkCorpusFacts(t *testing.T, got, want corpusFacts) {
	t.Helper()
	for name, fact := range want {
		if slices.Contains(notReported, name) {
			continue
		}
		reported, known := got[name]
		if !known {
			t.Errorf("%s: got no such fact, want %v", name, fact)
			continue
		}
		if diff := cmp.Diff(inOneForm(name, fact), inOneForm(name, reported)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if records, ok := got["record_list"].([]any); ok && float64(len(records)) != got["records"] {
		t.Errorf("got a list of %d records, want %v", len(records), got["records"])
	}
	if member, ok := want["member"]; ok && got["member"] != member {
		t.Errorf("got member %v, want %v", got["member"], member)
	}
}

// localPart matches the redacted part of an address.
var localPart = regexp.MustCompile(`[^\s<>=;]+@`)

// inOneForm normalizes a fact: the index has words, addresses and times as reporters write
// them.
func inOneForm(name string, fact any) any {
	switch value := fact.(type) {
	case string:
		switch name {
		case "start", "end", "arrival_date":
			return instant(value)
		case "user_agent", "original_mail_from", "authentication_results":
			value = localPart.ReplaceAllString(value, "redacted@")
		}
		if value == "" {
			return nil
		}
		return value
	case []any:
		if name == "policies" {
			return policiesInOneForm(value)
		}
		return value
	}
	return fact
}

// instant parses the time formats of the index and the command.
func instant(text string) any {
	text, _, _ = strings.Cut(text, " (")
	for _, layout := range []string{time.RFC3339, "Mon, _2 Jan 2006 15:04:05 -0700", "_2 Jan 2006 15:04:05 -0700"} {
		if when, err := time.Parse(layout, text); err == nil {
			return when.UTC()
		}
	}
	return text
}

// policiesInOneForm reduces the policies of a TLS report to the facts of the index.
func policiesInOneForm(policies []any) any {
	var all []map[string]any
	for _, policy := range policies {
		known := make(map[string]any)
		for name, fact := range policy.(map[string]any) {
			switch name {
			case "type", "domain":
				text, _ := fact.(string)
				known[name] = strings.ToLower(strings.TrimSuffix(text, "."))
			case "success", "failure":
				if text, ok := fact.(string); ok { // as in the report
					n, err := strconv.ParseFloat(text, 64)
					if err == nil {
						fact = n
					}
				}
				known[name] = fact
			case "details", "result_types":
				known[name] = fact
			}
		}
		all = append(all, known)
	}
	return all
}
