package alert_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/alert"
)

func sends(key string, class dmarcd.Class, messages, passes int64) dmarcd.MailPart {
	return dmarcd.MailPart{Key: key, Name: "The " + key, Class: class, Messages: messages, Passes: passes}
}

// TestParts has mail move between the parts of networks and services. Only what matters to the owner
// is reported, under the name and class that the pages show.
func TestParts(t *testing.T) {
	t.Parallel()
	const days, last = 40, 36 // the days with mail, and the first day of the last phase
	const yours, service, forwarder = dmarcd.ClassYours, dmarcd.ClassService, dmarcd.ClassForwarder
	const unknown, spoofing = dmarcd.ClassUnknown, dmarcd.ClassSpoofing
	office := sends("AS64496:yours", yours, 1000, 990)
	for _, row := range []struct {
		name   string
		before []dmarcd.MailPart
		after  []dmarcd.MailPart
		first  map[string]int // the first days of senders, apart from those of the mail
		team   map[string]dmarcd.Class
		known  []dmarcd.Incident
		want   []string
	}{
		{
			"a server that SPF lists since",
			[]dmarcd.MailPart{office, sends("AS64497:others", spoofing, 200, 0)},
			[]dmarcd.MailPart{office, sends("AS64497:yours", yours, 200, 200)},
			map[string]int{"AS64497:yours": 0},
			nil, nil, nil,
		},
		{
			"a new server beside spoofers",
			[]dmarcd.MailPart{office, sends("AS64497:others", spoofing, 200, 0)},
			[]dmarcd.MailPart{office, sends("AS64497:others", spoofing, 200, 0), sends("AS64497:yours", yours, 200, 200)},
			nil, nil, nil,
			[]string{"sender.new AS64497:yours The AS64497:yours yours"},
		},
		{"a service that signs since", []dmarcd.MailPart{office, sends("news:rest", unknown, 200, 0)}, []dmarcd.MailPart{office, sends("news", service, 200, 200)}, nil, nil, nil, nil},
		{
			"a mailbox provider that forwarded before",
			[]dmarcd.MailPart{office, sends("post:forwarding", forwarder, 200, 150)},
			[]dmarcd.MailPart{office, sends("post:forwarding", forwarder, 200, 150), sends("post:yours", service, 200, 200)},
			nil, nil, nil,
			[]string{"sender.new post:yours The post:yours service"},
		},
		{"a new service that is not aligned", []dmarcd.MailPart{office}, []dmarcd.MailPart{office, sends("news:rest", unknown, 100, 0)}, nil, nil, nil, []string{"sender.new news:rest The news:rest unknown"}},
		{"little spoofing by customers of a host", []dmarcd.MailPart{office}, []dmarcd.MailPart{office, sends("host:others", unknown, 150, 0)}, nil, nil, nil, nil},
		{"a new forwarder", []dmarcd.MailPart{office}, []dmarcd.MailPart{office, sends("AS64498:forwarding", forwarder, 200, 100)}, nil, nil, nil, nil},
		{"keys of the version before", []dmarcd.MailPart{office, sends("post", "", 200, 200)}, []dmarcd.MailPart{office, sends("post:yours", service, 200, 200)}, nil, nil, nil, nil},
		{
			"a service that no longer signs",
			[]dmarcd.MailPart{office, sends("news", service, 200, 198), sends("news:rest", unknown, 10, 0)},
			[]dmarcd.MailPart{office, sends("news:rest", spoofing, 210, 0)},
			nil, nil, nil,
			[]string{"sender.failing news The news service"},
		},
		{
			"much spoofing beside a service that signs",
			[]dmarcd.MailPart{office, sends("news", service, 200, 198)},
			[]dmarcd.MailPart{office, sends("news", service, 200, 198), sends("news:rest", spoofing, 1000, 0)},
			nil, nil, nil,
			[]string{"spoofing.burst   "},
		},
		{
			"a provider that signs as itself",
			[]dmarcd.MailPart{office, sends("post:yours", service, 200, 198)},
			[]dmarcd.MailPart{office, sends("post:as:post.example", unknown, 200, 0)},
			nil, nil, nil,
			[]string{"sender.failing post:yours The post:yours service"},
		},
		{
			"an incident of the version before",
			[]dmarcd.MailPart{office, sends("AS64497:yours", yours, 200, 198)},
			[]dmarcd.MailPart{office, sends("AS64497:yours", yours, 200, 0)},
			nil, nil,
			[]dmarcd.Incident{{Kind: dmarcd.SenderFailing, Domain: 1, Subject: "AS64497", First: last, Last: last}},
			nil,
		},
		{"a class of the team for all parts", []dmarcd.MailPart{office}, []dmarcd.MailPart{office, sends("AS64497:yours", yours, 200, 200)}, nil, map[string]dmarcd.Class{"AS64497": spoofing}, nil, nil},
	} {
		mail := dmarcd.DomainMail{ID: 1, First: make(map[string]dmarcd.Day), Classes: row.team}
		for day := range days {
			senders := row.before
			if day >= last {
				senders = row.after
			}
			of := dmarcd.MailDay{Day: dmarcd.Day(day), Senders: senders}
			for _, s := range senders {
				of.Messages += s.Messages
				of.Passes += s.Passes
				if _, known := mail.First[s.Key]; !known {
					mail.First[s.Key] = dmarcd.Day(day)
				}
			}
			mail.Days = append(mail.Days, of)
		}
		for key, day := range row.first {
			mail.First[key] = dmarcd.Day(day)
		}
		fresh, _ := alert.Merge(row.known, alert.Detect(mail, days))
		var got []string
		for _, d := range fresh {
			got = append(got, fmt.Sprintf("%s %s %s %s", d.Kind, d.Subject, d.Name, d.Class))
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q want %q", row.name, got, row.want)
		}
	}
}
