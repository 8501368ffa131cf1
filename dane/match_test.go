package dane_test

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	type (
		chain   = []*x509.Certificate
		records = []dane.Record
	)
	root := issue(t, nil, "root")
	middle := issue(t, root, "middle")
	leaf := issue(t, middle, "server", "mx.example.com").Leaf
	other := issue(t, nil, "other")
	served := chain{leaf, middle.Leaf, root.Leaf}
	names := []string{"mx.example.com", "example.com"}
	for _, tt := range []struct {
		name    string
		chain   chain
		records records
		names   []string
		after   time.Duration // since today
		matched *x509.Certificate
		want    []dane.Kind
	}{
		{name: "3 1 1", chain: served, records: records{recordOf(3, 1, 1, leaf)}, names: names, matched: leaf},
		{name: "3 1 2", chain: served, records: records{recordOf(3, 1, 2, leaf)}, names: names, matched: leaf},
		{name: "3 0 0", chain: served, records: records{recordOf(3, 0, 0, leaf)}, names: names, matched: leaf},
		{name: "3 1 0", chain: served, records: records{recordOf(3, 1, 0, leaf)}, names: names, matched: leaf},
		{name: "usage 3 ignores dates and names", chain: chain{leaf}, records: records{recordOf(3, 0, 1, leaf)}, after: 9000 * time.Hour, matched: leaf},
		{name: "usage 3 is not about an issuer", chain: served, records: records{recordOf(3, 1, 1, root.Leaf)}, names: names, want: []dane.Kind{dane.NoMatch}},
		{name: "the second of two records", chain: served, records: records{recordOf(3, 1, 1, other.Leaf), recordOf(3, 1, 1, leaf)}, names: names, matched: leaf},
		{name: "2 0 1 for the root", chain: served, records: records{recordOf(2, 0, 1, root.Leaf)}, names: names, matched: root.Leaf},
		{name: "2 1 1 for an authority in between", chain: served, records: records{recordOf(2, 1, 1, middle.Leaf)}, names: names, matched: middle.Leaf},
		{name: "2 1 1 for an authority without the root", chain: chain{leaf, middle.Leaf}, records: records{recordOf(2, 1, 1, middle.Leaf)}, names: names, matched: middle.Leaf},
		{name: "usage 2 is not about the server's own certificate", chain: served, records: records{recordOf(2, 1, 1, leaf)}, names: names, want: []dane.Kind{dane.NoMatch}},
		{name: "usage 2 without the chain", chain: chain{leaf}, records: records{recordOf(2, 0, 1, root.Leaf)}, names: names, want: []dane.Kind{dane.ChainNotServed}},
		{name: "usage 2 with a gap in the chain", chain: chain{leaf, root.Leaf}, records: records{recordOf(2, 0, 1, root.Leaf)}, names: names, want: []dane.Kind{dane.ChainInvalid}},
		{name: "usage 2 with a chain that is not the server's", chain: chain{leaf, middle.Leaf, other.Leaf}, records: records{recordOf(2, 0, 1, other.Leaf)}, names: names, want: []dane.Kind{dane.ChainInvalid}},
		{name: "usage 2 minds dates", chain: served, records: records{recordOf(2, 0, 1, root.Leaf)}, names: names, after: 9000 * time.Hour, want: []dane.Kind{dane.ChainInvalid}},
		{name: "usage 2 minds names", chain: served, records: records{recordOf(2, 0, 1, root.Leaf)}, names: []string{"other.example.com", ""}, want: []dane.Kind{dane.NameMismatch}},
		{name: "a record of usage 3 makes good for one of usage 2", chain: served, records: records{recordOf(2, 0, 1, root.Leaf), recordOf(3, 1, 1, leaf)}, matched: leaf},
		{name: "usage 1 is passed over", chain: served, records: records{recordOf(1, 1, 1, leaf)}, names: names, want: []dane.Kind{dane.NoMatch}},
		{name: "no records", chain: served, names: names, want: []dane.Kind{dane.NoMatch}},
		{name: "no certificates", records: records{recordOf(3, 1, 1, leaf)}, names: names, want: []dane.Kind{dane.NoMatch}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := dane.Match(tt.chain, tt.records, tt.names, today.Add(tt.after))
			if got.OK != (tt.matched != nil) || got.Certificate != tt.matched {
				t.Errorf("got ok %v, certificate %v; want %v", got.OK, subject(got.Certificate), subject(tt.matched))
			}
			if kinds := kindsOf(got.Problems); !slices.Equal(kinds, tt.want) {
				t.Errorf("problems: got %v want %v", got.Problems, tt.want)
			}
			if got.OK && !slices.ContainsFunc(tt.records, func(r dane.Record) bool { return r.String() == got.Record.String() }) {
				t.Errorf("got record %v, want one of those given", got.Record)
			}
		})
	}
}

func subject(c *x509.Certificate) string {
	if c == nil {
		return "none"
	}
	return c.Subject.CommonName
}

func kindsOf(problems []dane.Problem) []dane.Kind {
	var kinds []dane.Kind
	for _, p := range problems {
		kinds = append(kinds, p.Kind)
	}
	return kinds
}

func TestHostProbe(t *testing.T) {
	t.Parallel()
	root := issue(t, nil, "root")
	leaf := issue(t, root, "server", "base.example.net").Leaf
	dial := func(_ context.Context, host, serverName string) ([]*x509.Certificate, error) {
		if host != "mx.example.com" || serverName != "base.example.net" {
			return nil, errors.New("dialled " + host + " as " + serverName)
		}
		return []*x509.Certificate{leaf, root.Leaf}, nil
	}
	host := dane.Host{Name: "mx.example.com", BaseName: "base.example.net", Records: []dane.Record{recordOf(2, 1, 1, root.Leaf)}}

	t.Run("the base name is asked for and will do as a name", func(t *testing.T) {
		t.Parallel()
		got, err := host.Probe(t.Context(), dial, "example.com", today)
		if err != nil || !got.OK {
			t.Errorf("got %+v, error %v; want a match", got, err)
		}
	})
	t.Run("problems bear the host", func(t *testing.T) {
		t.Parallel()
		other := host
		other.Records = []dane.Record{recordOf(3, 1, 1, root.Leaf)}
		got := musttest.Get(other.Probe(t.Context(), dial, "example.com", today))(t)
		if len(got.Problems) != 1 || got.Problems[0].Host != "mx.example.com" || got.Problems[0].Text != other.Records[0].String() {
			t.Errorf("got problems %v want one of mx.example.com with the record", got.Problems)
		}
	})
	t.Run("without records the host itself is asked for", func(t *testing.T) {
		t.Parallel()
		_, err := dane.Host{Name: "mx.example.com"}.Probe(t.Context(), dial, "example.com", today)
		if err == nil || !strings.Contains(err.Error(), "dialled mx.example.com as mx.example.com") {
			t.Errorf("got error %v want that of dial", err)
		}
	})
}
