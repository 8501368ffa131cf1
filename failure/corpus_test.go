package failure_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// corpusFacts are the known facts about a failure report in the corpus.
type corpusFacts struct {
	TextOnly         bool    `json:"text_only"`
	FeedbackType     *string `json:"feedback_type"`
	Version          *string
	UserAgent        *string `json:"user_agent"`
	AuthFailure      *string `json:"auth_failure"`
	ReportedDomain   *string `json:"reported_domain"`
	SourceIP         *string `json:"source_ip"`
	ArrivalDate      *string `json:"arrival_date"`
	DeliveryResult   *string `json:"delivery_result"`
	OriginalMailFrom *string `json:"original_mail_from"`
	DKIMDomain       *string `json:"dkim_domain"`
	Results          *string `json:"authentication_results"`
	SPFAligned       *string `json:"spf_aligned"`
	DKIMAligned      *string `json:"dkim_aligned"`
}

// TestCorpus parses the failure reports in the corpus, a collection of tests of other
// projects that is not part of this repository. Without it the test is skipped; other
// tests cover the same with our own texts.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, file := range corpustest.Reports[corpusFacts](t, "failure") {
		if file.Expect.Status == "reject" {
			continue
		}
		t.Run(file.File, func(t *testing.T) {
			t.Parallel()
			data := musttest.Get(os.ReadFile(file.Path()))(t)
			report, err := failure.Parse(failureMessage(t, data), failure.Options{Unredacted: true})
			if file.Expect.Status == "not-a-dmarc-failure-report" {
				var rejected *failure.RejectedError
				if !errors.As(err, &rejected) || rejected.Why != failure.RejectedOther || rejected.FeedbackType != *file.Facts.FeedbackType {
					t.Errorf("got error %v, want another feedback report of type %s", err, *file.Facts.FeedbackType)
				}
				return
			}
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			compareFacts(t, report, file.Facts)
		})
	}
}

// failureMessage extracts the failure report from a mail.
func failureMessage(t *testing.T, mail []byte) failure.Message {
	t.Helper()
	var message failure.Message
	err := new(unpack.Walker).Walk(t.Context(), bytes.NewReader(mail), unpack.DefaultLimits(), func(p *unpack.Part) error {
		if p.Kind != unpack.Failure {
			t.Errorf("got a part of kind %v, want a failure report", p.Kind)
		}
		message = p.Failure
		return nil
	})
	musttest.Do(t, err)
	return message
}

func compareFacts(t *testing.T, r failure.Report, want corpusFacts) {
	t.Helper()
	source := ""
	if r.SourceIP.IsValid() {
		source = r.SourceIP.String()
	}
	for _, fact := range []struct {
		name string
		got  string
		want *string
	}{
		{"feedback_type", r.FeedbackType, want.FeedbackType},
		{"version", r.Version, want.Version},
		{"user_agent", r.UserAgent, want.UserAgent},
		{"auth_failure", string(r.AuthFailure), want.AuthFailure},
		{"reported_domain", r.ReportedDomain, want.ReportedDomain},
		{"source_ip", source, want.SourceIP},
		{"delivery_result", string(r.DeliveryResult), want.DeliveryResult},
		{"original_mail_from", r.OriginalMailFrom, want.OriginalMailFrom},
		{"dkim_domain", r.DKIMDomain, want.DKIMDomain},
		{"authentication_results", strings.Join(r.AuthenticationResults, "; "), want.Results},
	} {
		if fact.want != nil && fact.got != *fact.want {
			t.Errorf("%s: got %q, want %q", fact.name, fact.got, *fact.want)
		}
		if fact.want == nil && fact.got != "" {
			t.Errorf("%s: got %q, want nothing", fact.name, fact.got)
		}
	}
	if want.ArrivalDate != nil {
		text, _, _ := strings.Cut(*want.ArrivalDate, " (")
		when, err := time.Parse("_2 Jan 2006 15:04:05 -0700", strings.TrimSpace(text[strings.Index(text, ",")+1:]))
		if err != nil || !r.ArrivalDate.Equal(when) {
			t.Errorf("arrival_date: got %v, want %v (%v)", r.ArrivalDate, *want.ArrivalDate, err)
		}
	}
	if want.TextOnly {
		misaligned := func(aligned *string, mechanism string) bool {
			return (*aligned == "no") == slices.Contains(r.Misaligned, mechanism)
		}
		if !r.AlignmentReported || !misaligned(want.SPFAligned, "spf") || !misaligned(want.DKIMAligned, "dkim") {
			t.Errorf("alignment: got %v, want spf %s, dkim %s", r.Misaligned, *want.SPFAligned, *want.DKIMAligned)
		}
	}
}
