package dkim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/dkim"
)

// corpusTable reads a table of the corpus, a collection of other projects' tests
// that is not part of this repository. Without the corpus there is nothing to run:
// the rules themselves are tested elsewhere.
func corpusTable(t *testing.T, name string, table any) bool {
	t.Helper()
	root := os.Getenv("DMARCD_CORPUS")
	if root == "" {
		t.Log("DMARCD_CORPUS is not set, nothing to run")
		return false
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("..", root)
	}
	data, err := os.ReadFile(filepath.Join(root, "dns", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, table); err != nil {
		t.Fatal(err)
	}
	return true
}

// disagreements holds, by the name of a case, why we differ from a table.
type disagreements map[string]string

// judge compares one case and keeps the list of disagreements honest: one that
// does not disagree any more is a failure too. What was judged is taken off the
// list, so that what remains names no case.
func (d disagreements) judge(t *testing.T, id string, agrees bool, detail any) {
	t.Helper()
	reason, listed := d[id]
	delete(d, id)
	switch {
	case agrees && listed:
		t.Errorf("%s: got what the table wants, but a disagreement is listed: %s", id, reason)
	case !agrees && !listed:
		t.Errorf("%s: got something else than the table wants: %+v", id, detail)
	}
}

// rest fails the test for listed cases that the table does not have.
func (d disagreements) rest(t *testing.T) {
	t.Helper()
	for id := range d {
		t.Errorf("%s: a disagreement is listed, but there is no such case", id)
	}
}

func TestCorpusValidity(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			ID, Record string
			Expect     struct {
				Valid  bool
				IsDKIM bool `json:"is_dkim"`
			}
		}
	}
	if !corpusTable(t, "mjl-+mox/dkim-record-parse.json", &table) {
		return
	}
	known := disagreements{
		"dkim-record-parse-004": "the grammar of RFC 6376 §3.2 has no place for white space after the last semicolon; we say so, but the key can be read and verifiers do read it",
		"dkim-record-parse-009": "RFC 6376 §6.1.2 asks whether the key is revoked (step 7) before it looks at the key type (step 8)",
	}
	for _, c := range table.Cases {
		key, ok := dkim.ParseKey(c.Record)
		// The source calls a revoked key a valid record.
		agrees := ok == c.Expect.IsDKIM && (ok && key.State != dkim.Invalid) == c.Expect.Valid
		known.judge(t, c.ID, agrees, key)
	}
	known.rest(t)
}

func TestCorpusCodes(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			ID, Record string
			Expect     struct{ Code string }
		}
	}
	if !corpusTable(t, "georgestarcher+dmarcgo/dkim-record-parse.json", &table) {
		return
	}
	kinds := map[string]dkim.Problem{
		"dkim.malformed_public_key":       {Kind: dkim.UndecodableKey, Tag: "p"},
		"dkim.weak_sha1":                  {Kind: dkim.SHA1Allowed, Tag: "h"},
		"dkim.unsupported_hash_algorithm": {Kind: dkim.UnknownHash, Tag: "h"},
		"dkim.invalid_version":            {Kind: dkim.VersionNotFirst, Tag: "v"},
		"dkim.invalid_hash_algorithms":    {Kind: dkim.InvalidValue, Tag: "h"},
		"dkim.invalid_services":           {Kind: dkim.InvalidValue, Tag: "s"},
		"dkim.invalid_flags":              {Kind: dkim.InvalidValue, Tag: "t"},
	}
	for _, c := range table.Cases {
		key, _ := dkim.ParseKey(c.Record)
		want, listed := kinds[c.Expect.Code]
		switch {
		case c.Expect.Code == "dkim.revoked_key":
			if key.State != dkim.Revoked {
				t.Errorf("%s: got %v, want %v", c.ID, key.State, dkim.Revoked)
			}
		case !listed:
			t.Errorf("%s: got the code %q, want one that is known", c.ID, c.Expect.Code)
		case !slices.ContainsFunc(key.Problems, func(p dkim.Problem) bool { return p.Kind == want.Kind && p.Tag == want.Tag }):
			t.Errorf("%s: got %v, want %s of %s", c.ID, key.Problems, want.Kind, want.Tag)
		}
	}
}
