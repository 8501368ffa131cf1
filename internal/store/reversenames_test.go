package store_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

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
