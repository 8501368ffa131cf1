package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestTeamSenders(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		read := func() []dmarcd.TeamSender {
			in.Helper()
			return musttest.Get(in.team.TeamSenders(in.Context()))(in)
		}
		crm := dmarcd.TeamSender{
			Key: "crm", Name: "Our CRM", Class: dmarcd.ClassYours, Hosts: []string{"a.example", "b.example"}, Domains: []string{"c.example"},
			Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")},
		}
		in.must(in.team.SetTeamSender(in.Context(), dmarcd.TeamSender{Key: "AS64496", Name: "Data centre"}))
		in.must(in.team.SetTeamSender(in.Context(), dmarcd.TeamSender{Key: "crm", Name: "CRM"}))
		in.must(in.team.SetTeamSender(in.Context(), crm))
		if diff := cmp.Diff([]dmarcd.TeamSender{{Key: "AS64496", Name: "Data centre"}, crm}, read(), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			in.Errorf("-want +got\n%s", diff)
		}
		in.must(in.team.RemoveTeamSender(in.Context(), "AS64496"))
		if err := in.team.RemoveTeamSender(in.Context(), "AS64496"); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("removed twice: got %v want ErrNotFound", err)
		}
		for i := range dmarcd.MaxTeamSenders - 1 {
			in.must(in.team.SetTeamSender(in.Context(), dmarcd.TeamSender{Key: fmt.Sprint("s", i), Name: "S"}))
		}
		if err := in.team.SetTeamSender(in.Context(), dmarcd.TeamSender{Key: "more", Name: "S"}); !errors.Is(err, dmarcd.ErrInvalid) {
			in.Errorf("one too many: got %v want ErrInvalid", err)
		}
		in.must(in.team.SetTeamSender(in.Context(), crm)) // it replaces one
		if got := len(read()); got != dmarcd.MaxTeamSenders {
			in.Errorf("got %d senders want %d", got, dmarcd.MaxTeamSenders)
		}
	})
}

// TestTeamSendersChangeThePast checks that all days are read again after a change, also if it
// happens while they are being read.
func TestTeamSendersChangeThePast(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		today := dmarcd.DayOf(in.clock.Now())
		for i := range 3 {
			in.receive(storetest.Aggregate(fmt.Sprint(i), ours, today-dmarcd.Day(i), storetest.Passed(ours, 1)))
		}
		days := 0
		var during func()
		update := func() int {
			in.Helper()
			days = 0
			musttest.Get(in.store.UpdateSenders(in.Context(), func(_ context.Context, _ *store.Team, period dmarcd.Days, _ func([]dmarcd.Sender) error, _ func([]dmarcd.DomainDay) error) error {
				days += int(*period.To-*period.From) + 1
				if during != nil {
					during()
				}
				return nil
			}))(in)
			return days
		}
		for _, step := range []struct {
			name         string
			make, during func() error
			want         int
		}{
			{name: "the first time", want: 3},
			{name: "nothing new", want: 0},
			{name: "a sender", make: func() error { return in.team.SetTeamSender(in.Context(), dmarcd.TeamSender{Key: "a", Name: "A"}) }, want: 3},
			{name: "nothing new again", want: 0},
			{
				name: "another meanwhile", make: func() error { return in.team.SetTeamSender(in.Context(), dmarcd.TeamSender{Key: "a", Name: "B"}) },
				during: func() error { return in.team.RemoveTeamSender(in.Context(), "a") }, want: 3,
			},
			{name: "after that", want: 3},
			{name: "nothing new at the end", want: 0},
		} {
			if step.make != nil {
				in.must(step.make())
			}
			during = nil
			if step.during != nil {
				during = func() { in.must(step.during()) }
			}
			if got := update(); got != step.want {
				in.Errorf("%s: got %d days read, want %d", step.name, got, step.want)
			}
		}
	})
}

func TestReverseNames(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		at := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
		var saved []dmarcd.ReverseName
		var asked []netip.Addr
		for i := range 200 {
			addr := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
			asked = append(asked, addr)
			if i%2 == 0 {
				saved = append(saved, dmarcd.ReverseName{Addr: addr, Name: fmt.Sprintf("host%d.example", i), CheckedAt: at})
			}
		}
		six := netip.MustParseAddr("2001:db8::1")
		renamed := dmarcd.ReverseName{Addr: asked[0], Name: "new.example", CheckedAt: at.Add(time.Hour)}
		nameless := dmarcd.ReverseName{Addr: six, CheckedAt: at}
		for _, names := range [][]dmarcd.ReverseName{saved, {saved[0], renamed, nameless}, nil} {
			musttest.Do(t, s.SaveReverseNames(t.Context(), names))
		}
		saved[0] = renamed
		got := musttest.Get(s.ReverseNames(t.Context(), append(asked, six)))(t)
		slices.SortFunc(got, func(a, b dmarcd.ReverseName) int { return a.Addr.Compare(b.Addr) })
		if want := slices.Concat(saved, []dmarcd.ReverseName{nameless}); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if none, err := s.ReverseNames(t.Context(), nil); err != nil || len(none) != 0 {
			t.Errorf("of no address: got %v, %v; want none", none, err)
		}
	})
}
