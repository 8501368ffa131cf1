package phrase_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// TestClassOfASender says the class of a sender once, beside the part of a network in its name.
func TestClassOfASender(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		class dmarcd.Class
		want  string
	}{
		{"Receiptly", dmarcd.ClassService, "from Receiptly (service) fails"},
		{"Office Fibre (yours)", dmarcd.ClassYours, "from Office Fibre (yours) fails"},
		{"SendGrid (not aligned)", dmarcd.ClassUnknown, "from SendGrid (not aligned, unknown) fails"},
		{"Receiptly", "", "from Receiptly fails"},
	} {
		got := phrase.Event(dmarcd.Event{Kind: dmarcd.SenderFailing, Domain: "example.com", EventData: dmarcd.EventData{SubjectName: row.name, SubjectClass: row.class}})
		if !strings.Contains(got, row.want) {
			t.Errorf("%s, %s: got %q, want %q in it", row.name, row.class, got, row.want)
		}
	}
}
