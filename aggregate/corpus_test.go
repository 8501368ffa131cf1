package aggregate_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/corpustest"
)

// corpusFacts are the known facts of one report, by their names in the index.
type corpusFacts map[string]any

type corpusFile struct {
	File   string `json:"file"`
	Kind   string `json:"kind"`
	Expect struct {
		Status string `json:"status"`
	} `json:"expect"`
	Facts corpusFacts `json:"facts"`
}

// TestCorpus checks the known facts about files of other projects, if DMARCD_CORPUS is
// set.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := corpustest.Dir(t)
	content, err := os.ReadFile(filepath.Join(dir, "INDEX.json"))
	must(t, err)
	var index struct {
		Files []corpusFile `json:"files"`
	}
	must(t, json.Unmarshal(content, &index))
	checked := 0
	for _, f := range index.Files {
		if f.Kind != "aggregate" {
			continue
		}
		checked++
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			checkCorpusFile(t, filepath.Join(dir, f.File), f)
		})
	}
	if checked == 0 {
		t.Error("got no aggregate report in the index, want some")
	}
}

func checkCorpusFile(t *testing.T, name string, f corpusFile) {
	t.Helper()
	content, err := os.ReadFile(name)
	must(t, err)
	documents := unpacked(t, content)
	if f.Expect.Status == "reject" {
		for _, document := range documents {
			_, _, err := read(bytes.NewReader(document))
			if rejected := new(aggregate.RejectedError); !errors.As(err, &rejected) {
				t.Errorf("got error %v, want a rejection", err)
			}
		}
		return
	}
	want := []corpusFacts{f.Facts}
	if several, ok := f.Facts["reports"].([]any); ok {
		want = nil
		for _, facts := range several {
			want = append(want, facts.(map[string]any))
		}
	}
	if len(documents) != len(want) {
		t.Fatalf("got %d documents, want %d", len(documents), len(want))
	}
	for i, document := range documents {
		report, records, err := read(bytes.NewReader(document))
		must(t, err)
		checkFacts(t, factsOf(report, records), want[i])
		checkRoundTrip(t, report, records)
	}
}

// checkFacts compares the facts that both sides have. All of ours must be in the index
// unless they are empty.
func checkFacts(t *testing.T, got, want corpusFacts) {
	t.Helper()
	for name, value := range got {
		expected, known := want[name]
		if !known {
			expected = nil
		}
		if expected == "" {
			expected = nil // an empty element
		}
		if diff := cmp.Diff(value, expected); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

func factsOf(report aggregate.Report, records []aggregate.Record) corpusFacts {
	var messages, compliant int64
	sources := make(map[string]bool)
	for _, r := range records {
		messages += r.Count
		if r.Compliant() {
			compliant += r.Count
		}
		sources[r.Source] = true
	}
	var errs any
	if len(report.Metadata.Errors) > 0 {
		var list []any
		for _, text := range report.Metadata.Errors {
			list = append(list, text)
		}
		errs = list
	}
	m, p := report.Metadata, report.Policy
	return corpusFacts{
		"xml_namespace":         orNil(report.Namespace),
		"org_name":              orNil(m.OrgName),
		"email":                 orNil(m.Email),
		"report_id":             orNil(m.ReportID),
		"begin":                 float64(m.Begin),
		"end":                   float64(m.End),
		"span_seconds":          float64(m.End - m.Begin),
		"errors":                errs,
		"generator":             orNil(m.Generator),
		"domain":                orNil(p.Domain),
		"p":                     orNil(string(p.P)),
		"pp_sp":                 orNil(string(p.SP)),
		"pp_np":                 orNil(string(p.NP)),
		"pp_adkim":              orNil(p.ADKIM),
		"pp_aspf":               orNil(p.ASPF),
		"pp_pct":                orNil(p.Percent),
		"pp_fo":                 orNil(p.FailureOptions),
		"pp_testing":            orNil(p.Testing),
		"pp_discovery_method":   orNil(p.DiscoveryMethod),
		"records":               float64(len(records)),
		"sum_count":             float64(messages),
		"dmarc_compliant_count": float64(compliant),
		"distinct_source_ips":   float64(len(sources)),
		"version":               orNil(report.Version),
		"schema_flavour":        string(report.Dialect),
	}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// unpacked opens the containers of the corpus. It has no limits, because it trusts them.
func unpacked(t *testing.T, content []byte) [][]byte {
	t.Helper()
	switch {
	case bytes.HasPrefix(content, []byte("\x1f\x8b")):
		r, err := gzip.NewReader(bufio.NewReader(bytes.NewReader(content)))
		must(t, err)
		r.Multistream(false)
		return unpacked(t, readAll(t, r))
	case bytes.HasPrefix(content, []byte("PK")):
		archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		must(t, err)
		var documents [][]byte
		for _, file := range archive.File {
			r, err := file.Open()
			must(t, err)
			documents = append(documents, unpacked(t, readAll(t, r))...)
		}
		return documents
	case bytes.HasPrefix(content, []byte("\x78\x9c")), bytes.HasPrefix(content, []byte("\x78\xda")):
		r, err := zlib.NewReader(bytes.NewReader(content))
		must(t, err)
		return unpacked(t, readAll(t, r))
	}
	message, err := mail.ReadMessage(bytes.NewReader(content))
	if err != nil || message.Header.Get("From") == "" {
		return [][]byte{content}
	}
	return attachments(t, message.Header.Get("Content-Type"), message.Header.Get("Content-Transfer-Encoding"), message.Body)
}

// attachments returns the parts of a mail that may contain a report.
func attachments(t *testing.T, contentType, transfer string, body io.Reader) [][]byte {
	t.Helper()
	if contentType == "" {
		contentType = "text/plain"
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	must(t, err)
	if strings.HasPrefix(media, "multipart/") {
		var documents [][]byte
		parts := multipart.NewReader(body, parameters["boundary"])
		for {
			part, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return documents
			}
			must(t, err)
			if kind := part.Header.Get("Content-Type"); part.FileName() == "" && (kind == "" || strings.HasPrefix(kind, "text/")) {
				continue
			}
			documents = append(documents,
				attachments(t, part.Header.Get("Content-Type"), part.Header.Get("Content-Transfer-Encoding"), part)...)
		}
	}
	if strings.EqualFold(transfer, "base64") {
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	return unpacked(t, readAll(t, body))
}

func readAll(t *testing.T, r io.Reader) []byte {
	t.Helper()
	content, err := io.ReadAll(r)
	must(t, err)
	return slices.Clip(content)
}
