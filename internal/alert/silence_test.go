package alert_test

import (
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/alert"
)

// TestOutage wants one incident if no reports arrive for some days, although the first reports
// of some receivers arrive later than those of others, and one about a receiver that is
// missing ever since.
func TestOutage(t *testing.T) {
	t.Parallel()
	const begin = dmarcd.Day(20_000)
	const stop, resume, end = begin + 40, begin + 48, begin + 60
	for _, row := range []struct {
		name  string
		delay dmarcd.Day // from the day on which others report again
		want  []string
	}{
		{"all again", 0, []string{""}},
		{"later than others", 2, []string{""}},
		{"never", 100, []string{"", "b.example"}},
	} {
		var days []dmarcd.MailDay
		var incidents []dmarcd.Incident
		var got []string
		for today := begin; today < end; today++ {
			mail := dmarcd.MailDay{Day: today - 1, Messages: 200, Passes: 200}
			mail.Receivers = []dmarcd.MailPart{{Key: "a.example", Messages: 100, Passes: 100}}
			if today < stop || today >= resume+row.delay {
				mail.Receivers = append(mail.Receivers, dmarcd.MailPart{Key: "b.example", Messages: 100, Passes: 100})
			}
			if today < stop || today >= resume {
				days = append(days, mail)
			}
			fresh, _ := alert.Merge(incidents, alert.Detect(dmarcd.DomainMail{ID: 1, Days: days}, today))
			for _, d := range fresh {
				got = append(got, d.Subject)
				incidents = append(incidents, dmarcd.Incident{Kind: d.Kind, Domain: d.Domain, Subject: d.Subject, First: d.Day, Last: d.Day})
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: got incidents about %q want %q", row.name, got, row.want)
		}
	}
}
