package web_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// TestHistoryInWords wants every change of the sample in words, and once.
func TestHistoryInWords(t *testing.T) {
	t.Parallel()
	root, err := html.Parse(get(t, newWeb(t, &backend{viewer: sampleViewer()}), "/app/domains/example.com/history").Body)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for node := range root.Descendants() {
		if node.Data == "dt" && attribute(node.Parent.Parent, "class") == "changes" {
			got = append(got, node.FirstChild.Data)
		}
	}
	want := []string{
		"DMARC record", "SPF record", "Look-ups that SPF needs", "include:_spf.mailbox.example now lists", "dkim." + hostile,
		"DKIM key s2", "Policy", "Finding spf.too-many-lookups", "mx1.example.com, an address", "TLS-RPT record",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got other lines (-want +got):\n%s", diff)
	}
}

// TestHistoryAsCSV gives programs every change, by its path.
func TestHistoryAsCSV(t *testing.T) {
	t.Parallel()
	body := get(t, newWeb(t, &backend{viewer: sampleViewer()}), "/app/domains/example.com/history?csv=changes").Body.String()
	for _, path := range []string{"dmarc.applied", "spf.tree.include:_spf.mailbox.example.record", "tls_rpt.status"} {
		if !strings.Contains(body, ","+path+",") {
			t.Errorf("got no %s in the table, want every change", path)
		}
	}
}
