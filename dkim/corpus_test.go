package dkim_test

import (
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/internal/corpustest"
)

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
	corpustest.Table(t, "mjl-+mox/dkim-record-parse.json", &table)
	comparison := corpustest.Compare(t, corpustest.Disagreements{
		"dkim-record-parse-004": "the grammar of RFC 6376 §3.2 has no place for white space after the last semicolon; we say so, but the key can be read and verifiers do read it",
		"dkim-record-parse-009": "RFC 6376 §6.1.2 asks whether the key is revoked (step 7) before it compares the key type (step 8)",
	})
	for _, c := range table.Cases {
		key, ok := dkim.ParseKey(c.Record)
		// The source calls a revoked key a valid record.
		agrees := ok == c.Expect.IsDKIM && (ok && key.State != dkim.Invalid) == c.Expect.Valid
		comparison.Compare(c.ID, agrees, key, c.Expect)
	}
}

func TestCorpusCodes(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			ID, Record string
			Expect     struct{ Code string }
		}
	}
	corpustest.Table(t, "georgestarcher+dmarcgo/dkim-record-parse.json", &table)
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
