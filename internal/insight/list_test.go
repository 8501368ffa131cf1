package insight_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// lines formats rows.
func lines(rows []insight.Row) []string {
	var all []string
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%s|%s|%s|%d/%d|%v", r.Key, r.Name, r.Detail, r.Counts.Compliant, r.Counts.Total(), r.Trend))
	}
	return all
}

func TestListByGroup(t *testing.T) {
	t.Parallel()
	m := readMail(t, usual(), daysOf(1, 3))
	counts := dmarcd.Counts{Summary: dmarcd.Summary{Compliant: 130, NonCompliant: 36}, Quarantined: 10, Rejected: 20, DKIM: 100, SPF: 80}
	for _, test := range []struct {
		group insight.Group
		want  []string
	}{
		{insight.GroupSender, []string{
			"AS64496:yours|Network One (yours)|Netherlands|100/100|[50 0 50]",
			"Post Office:yours|Post Office (yours)|mailbox provider|30/30|[0 30 0]",
			"AS64497:others|Network Two (others)|New Zealand|0/20|[0 20 0]",
			"Newsletters:rest|Newsletters (not aligned)|marketing|0/10|[0 10 0]",
			"-:as:relay.example|Unknown networks (as relay.example)||0/5|[0 0 5]",
			"-:others|Unknown networks (others)||0/1|[0 0 1]",
		}},
		{insight.GroupCountry, []string{
			"NL|Netherlands|NL|130/130|[50 30 50]",
			"NZ|New Zealand|NZ|0/30|[0 30 0]",
			"-|Unknown country||0/6|[0 0 6]",
		}},
		{insight.GroupAddress, []string{
			"192.0.2.1|192.0.2.1|Network One|100/100|[50 0 50]",
			"192.0.2.9|192.0.2.9|out9.post.example|30/30|[0 30 0]",
			"198.51.100.1|198.51.100.1|mx.two.example|0/20|[0 20 0]",
			"198.51.100.2|198.51.100.2|Network Two|0/10|[0 10 0]",
			"203.0.113.5|203.0.113.5||0/5|[0 0 5]",
			"not an address|not an address||0/1|[0 0 1]",
		}},
		{insight.GroupReporter, []string{
			"receiver.example|receiver.example||80/116|[50 60 6]",
			"other.example|other.example||50/50|[0 0 50]",
		}},
		{insight.GroupSelector, []string{
			"s1._domainkey.example.com|s1._domainkey.example.com||100/100|[50 0 50]",
			"-|No signature||30/35|[0 30 5]",
			"k2._domainkey.elsewhere.example|k2._domainkey.elsewhere.example||0/20|[0 20 0]",
			"k3._domainkey.a.letters.example|k3._domainkey.a.letters.example||0/10|[0 10 0]",
			"k4._domainkey.letters.example|k4._domainkey.letters.example||0/1|[0 0 1]",
		}},
		{insight.GroupFrom, []string{
			"example.com|example.com||100/136|[50 30 56]",
			"mail.example.com|mail.example.com||30/30|[0 30 0]",
		}},
		{insight.GroupEnvelope, []string{
			"-|No envelope domain||50/86|[0 30 56]",
			"example.com|example.com||50/50|[50 0 0]",
			"bounces.example.com|bounces.example.com||30/30|[0 30 0]",
		}},
	} {
		got, err := m.List(t.Context(), insight.Query{Group: test.group, Limit: 100, Trends: true})
		if err != nil {
			t.Fatalf("%s: %v", test.group, err)
		}
		if diff := cmp.Diff(test.want, lines(got.Rows)); diff != "" {
			t.Errorf("%s: -want +got\n%s", test.group, diff)
		}
		if got.Next != "" || got.Counts != counts || got.Matching != len(test.want) {
			t.Errorf("%s: got next %q, %d with %+v; want the end, %d with %+v", test.group, got.Next, got.Matching, got.Counts, len(test.want), counts)
		}
	}
}

func TestSelectorOfSeveralSignatures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		signed []rollup.Signature
		want   string
	}{
		{"the one of the From domain", []rollup.Signature{
			{Domain: "relay.example", Selector: "r", Result: rollup.Pass}, {Domain: "example.com", Selector: "s", Result: rollup.Pass},
		}, "s._domainkey.example.com"},
		{"one that passed", []rollup.Signature{
			{Domain: "example.com", Selector: "s"}, {Domain: "relay.example", Selector: "r", Result: rollup.Pass},
		}, "r._domainkey.relay.example"},
		{"the first that failed", []rollup.Signature{
			{Domain: "a.example", Selector: "a"}, {Domain: "b.example", Selector: "b"},
		}, "a._domainkey.a.example"},
		{"a selector that is not told", []rollup.Signature{{Domain: "example.com", Result: rollup.Pass}}, "example.com"},
	} {
		of := newTeam(mail{source: "192.0.2.1", count: 1})
		of.Identities[0].Signatures = test.signed
		got, err := readMail(t, of, dmarcd.Days{}).List(t.Context(), insight.Query{Group: insight.GroupSelector, Limit: 1})
		if err != nil || got.Rows[0].Key != test.want {
			t.Errorf("%s: got %+v, %v; want %s", test.name, got.Rows, err, test.want)
		}
	}
}

func TestListIsFiltered(t *testing.T) {
	t.Parallel()
	m := readMail(t, usual(), daysOf(1, 3))
	for _, test := range []struct {
		name  string
		query insight.Query
		want  []string
	}{
		{"a part of a name in any case", insight.Query{Search: "NETWORK t"}, []string{"AS64497:others"}},
		{"a part of a key", insight.Query{Search: "as6449"}, []string{"AS64496:yours", "AS64497:others"}},
		{"a part of a detail", insight.Query{Search: "marketing"}, []string{"Newsletters:rest"}},
		{"nothing like it", insight.Query{Search: "nowhere"}, nil},
		{"mail that fails", insight.Query{Failing: true}, []string{"AS64497:others", "Newsletters:rest", "-:as:relay.example", "-:others"}},
		{"one key", insight.Query{Key: "Post Office:yours"}, []string{"Post Office:yours"}},
		{"by name", insight.Query{Sort: "name"}, []string{"AS64496:yours", "AS64497:others", "Newsletters:rest", "Post Office:yours", "-:as:relay.example", "-:others"}},
		{"by name, from the last", insight.Query{Sort: "-name"}, []string{"-:others", "-:as:relay.example", "Post Office:yours", "Newsletters:rest", "AS64497:others", "AS64496:yours"}},
		{"the fewest messages first", insight.Query{Sort: "messages"}, []string{"-:others", "-:as:relay.example", "Newsletters:rest", "AS64497:others", "Post Office:yours", "AS64496:yours"}},
		{"what passes least first", insight.Query{Sort: "passing"}, []string{"AS64497:others", "Newsletters:rest", "-:as:relay.example", "-:others", "AS64496:yours", "Post Office:yours"}},
		{"what passes SPF most first", insight.Query{Sort: "-spf"}, []string{"Post Office:yours", "AS64496:yours", "AS64497:others", "Newsletters:rest", "-:as:relay.example", "-:others"}},
		{"what passes DKIM most first", insight.Query{Sort: "-dkim"}, []string{"AS64496:yours", "AS64497:others", "Newsletters:rest", "Post Office:yours", "-:as:relay.example", "-:others"}},
		{"seen first", insight.Query{Sort: "first"}, []string{"AS64496:yours", "AS64497:others", "Newsletters:rest", "Post Office:yours", "-:as:relay.example", "-:others"}},
		{"seen last", insight.Query{Sort: "-last"}, []string{"AS64496:yours", "-:as:relay.example", "-:others", "AS64497:others", "Newsletters:rest", "Post Office:yours"}},
		{"an order that is none", insight.Query{Sort: "colour"}, []string{"AS64496:yours", "Post Office:yours", "AS64497:others", "Newsletters:rest", "-:as:relay.example", "-:others"}},
	} {
		test.query.Group = insight.GroupSender
		var got []string
		for { // in pages of two
			test.query.Limit = 2
			list, err := m.List(t.Context(), test.query)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			for _, r := range list.Rows {
				got = append(got, r.Key)
			}
			if test.query.After = list.Next; list.Next == "" {
				break
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	for _, bad := range []string{"x", "!", "eA", "e30x"} {
		if _, err := m.List(t.Context(), insight.Query{Group: insight.GroupSender, After: bad, Limit: 1}); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("cursor %q: got %v, want ErrInvalid", bad, err)
		}
	}
}

func TestTrendOfDays(t *testing.T) {
	t.Parallel()
	from := dmarcd.Day(-1)
	for _, test := range []struct {
		name string
		of   *team
		days dmarcd.Days
		want []int64
	}{
		{"days that are asked for", newTeam(mail{day: 2, count: 7}), daysOf(1, 4), []int64{0, 7, 0, 0}},
		{"days of the records", newTeam(mail{day: 2, count: 7}, mail{day: 4, count: 1}), dmarcd.Days{}, []int64{7, 0, 1}},
		{"an open end", newTeam(mail{day: 1, count: 7}), dmarcd.Days{From: &from}, []int64{0, 0, 7}},
		{"a report of another century", newTeam(mail{day: -30000, count: 7}, mail{day: 20000, count: 1}), dmarcd.Days{}, nil},
	} {
		got, err := readMail(t, test.of, test.days).List(t.Context(), insight.Query{Group: insight.GroupFrom, Limit: 1, Trends: true})
		if err != nil || !slices.Equal(got.Rows[0].Trend, test.want) {
			t.Errorf("%s: got %v, %v; want %v", test.name, got.Rows, err, test.want)
		}
	}
}

// TestNothingIsLostByGrouping checks that every group counts all mail, whatever it is.
func TestNothingIsLostByGrouping(t *testing.T) {
	t.Parallel()
	service := newService(t)
	rapid.Check(t, func(r *rapid.T) {
		word := rapid.SampledFrom([]string{"", "-", "example.com", "a.letters.example", "x y"})
		var all []mail
		for range rapid.IntRange(0, 20).Draw(r, "records") {
			all = append(all, mail{
				day: dmarcd.Day(rapid.IntRange(-3, 3).Draw(r, "day")), count: rapid.Int64Range(0, 1<<40).Draw(r, "count"),
				source: rapid.SampledFrom([]string{"", "192.0.2.1", "192.0.2.9", "198.51.100.1", "2001:db8::1", "nothing"}).Draw(r, "source"),
				dkim:   rapid.Bool().Draw(r, "dkim"), spf: rapid.Bool().Draw(r, "spf"),
				disposition: rapid.SampledFrom([]aggregate.Policy{"none", "quarantine", "reject"}).Draw(r, "disposition"),
				from:        word.Draw(r, "from"), envelope: word.Draw(r, "envelope"), reporter: word.Draw(r, "reporter"),
			})
		}
		of := newTeam(all...)
		for i := range of.Identities {
			for range rapid.IntRange(0, 2).Draw(r, "signatures") {
				of.Identities[i].Signatures = append(of.Identities[i].Signatures,
					rollup.Signature{Domain: word.Draw(r, "signer"), Selector: word.Draw(r, "selector"), Result: rollup.Pass})
			}
		}
		m, err := service.Read(t.Context(), of, "", dmarcd.Days{})
		if err != nil {
			r.Fatal(err)
		}
		var want dmarcd.Counts
		for _, sent := range all {
			want.Add(sent.outcome().Counts(sent.count))
		}
		for _, group := range insight.Groups() {
			list, err := m.List(t.Context(), insight.Query{Group: group, Limit: 1000, Trends: true})
			if err != nil {
				r.Fatal(err)
			}
			var sum dmarcd.Counts
			var trend int64
			for _, row := range list.Rows {
				sum.Add(row.Counts)
				for _, n := range row.Trend {
					trend += n
				}
				one, err := m.Breakdown(t.Context(), insight.Query{Group: group, Key: row.Key})
				if err != nil || one.Counts != row.Counts {
					r.Errorf("%s %q: got %+v, %v; want %+v", group, row.Key, one.Counts, err, row.Counts)
				}
			}
			if sum != want || list.Counts != want || trend != want.Total() {
				r.Errorf("%s: got %+v, in all %+v, by day %d; want %+v", group, sum, list.Counts, trend, want)
			}
		}
		var flow int64
		for _, f := range flowsOf(t, m, insight.Query{}) {
			flow += f.Messages
		}
		if flow != want.Total() {
			r.Errorf("got flows of %d, want %+v", flow, want)
		}
	})
}
