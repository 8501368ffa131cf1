package intake_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// pickyStore is a DeliveryStore that fails for deliveries with reports of some organizations.
type pickyStore struct {
	errs  map[string]error // by organization
	calls int
}

func (p *pickyStore) Receive(_ context.Context, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, error) {
	p.calls++
	receipts := make([][]dmarcd.Receipt, len(deliveries))
	for i, d := range deliveries {
		for _, r := range d.Reports {
			if err := p.errs[r.Organization]; err != nil {
				return nil, err
			}
			receipts[i] = append(receipts[i], dmarcd.Receipt{Kind: r.Kind, Member: r.Member, Status: dmarcd.Stored})
		}
		for _, r := range d.Rejections {
			receipts[i] = append(receipts[i], dmarcd.Receipt{Kind: r.Kind, Member: r.Member, Status: dmarcd.StatusRejected, Reason: r.Reason})
		}
	}
	return receipts, nil
}

// TestStoreAll stores deliveries of which some fail.
func TestStoreAll(t *testing.T) {
	t.Parallel()
	broken := errors.New("the row is too long")
	deliveries := func(organizations ...string) (all []*dmarcd.Delivery) {
		for _, organization := range organizations {
			all = append(all, &dmarcd.Delivery{Reports: []dmarcd.NewReport{{Report: dmarcd.Report{Kind: dmarcd.KindTLS, Member: "a", Organization: organization}}}})
		}
		return all
	}
	for _, tt := range []struct {
		name  string
		err   error
		want  string
		calls int
	}{
		{"none fails", nil, "stored stored stored", 1},
		{"for good", broken, "stored rejected stored", 1 + 1 + 3 + 1 + 1},
		{"temporarily", fmt.Errorf("%w: %w", dmarcd.ErrTemporary, broken), "error error error", 1},
		{"over a quota", &dmarcd.QuotaError{Name: dmarcd.QuotaStored}, "stored error stored", 1 + 3},
		{"without a right", dmarcd.ErrForbidden, "stored error stored", 1 + 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := &pickyStore{errs: map[string]error{"odd": tt.err}}
			receipts, errs := acceptor(t).StoreAll(t.Context(), store, deliveries("first", "odd", "last"))
			var got []string
			for i, err := range errs {
				switch {
				case err != nil && !errors.Is(err, tt.err):
					t.Errorf("got the error %v, want %v", err, tt.err)
				case err != nil:
					got = append(got, "error")
				default:
					got = append(got, string(receipts[i][0].Status))
				}
			}
			if got := strings.Join(got, " "); got != tt.want || store.calls != tt.calls {
				t.Errorf("got %s in %d calls, want %s in %d", got, store.calls, tt.want, tt.calls)
			}
		})
	}
	t.Run("all of a delivery", func(t *testing.T) {
		t.Parallel()
		delivery := deliveries("odd")[0]
		delivery.Reports = append(delivery.Reports, dmarcd.NewReport{Report: dmarcd.Report{Kind: dmarcd.KindAggregate, Member: "b"}})
		delivery.Rejections = []dmarcd.Rejection{{Member: "c", Reason: "no report"}}
		got, err := acceptor(t).Store(t.Context(), &pickyStore{errs: map[string]error{"odd": broken}}, delivery)
		const reason = "the report could not be stored: the row is too long"
		want := []dmarcd.Receipt{
			{Member: "c", Status: dmarcd.StatusRejected, Reason: "no report"},
			{Kind: dmarcd.KindTLS, Member: "a", Status: dmarcd.StatusRejected, Reason: reason},
			{Kind: dmarcd.KindAggregate, Member: "b", Status: dmarcd.StatusRejected, Reason: reason},
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("got the error %v and receipts (-want +got):\n%s", err, diff)
		}
	})
	t.Run("what cannot be rejected", func(t *testing.T) {
		t.Parallel()
		store := &fakeStore{err: broken}
		_, errs := acceptor(t).StoreAll(t.Context(), store, deliveries("odd", "even"))
		if want := []error{broken, broken}; !slices.Equal(errs, want) {
			t.Errorf("got %v, want %v", errs, want)
		}
	})
}

// rejectedStore is a RejectedStore with one rejected item.
type rejectedStore struct {
	rejected dmarcd.Rejected
	original dmarcd.Original
	settled  bool
}

func (s *rejectedStore) Receive(_ context.Context, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, error) {
	receipts := make([][]dmarcd.Receipt, len(deliveries))
	for i, d := range deliveries {
		for _, r := range d.Reports {
			receipts[i] = append(receipts[i], dmarcd.Receipt{Kind: r.Kind, Member: r.Member, Status: dmarcd.Stored})
		}
		for _, r := range d.Rejections {
			receipts[i] = append(receipts[i], dmarcd.Receipt{Kind: r.Kind, Member: r.Member, Status: dmarcd.StatusRejected})
		}
	}
	return receipts, nil
}

func (s *rejectedStore) RejectedByID(context.Context, dmarcd.RejectedID) (dmarcd.Rejected, error) {
	return s.rejected, nil
}

func (s *rejectedStore) RejectedOriginal(context.Context, dmarcd.RejectedID) (dmarcd.StoredOriginal, error) {
	return dmarcd.StoredOriginal{Size: s.original.Size, Packed: s.original.Packed()}, nil
}

func (s *rejectedStore) SettleRejected(context.Context, dmarcd.RejectedID) error {
	s.settled = true
	return nil
}

// TestRetry retries an item of a message. It stays unless its own content is accepted.
func TestRetry(t *testing.T) {
	t.Parallel()
	const separator = "From a Thu Jan  1 00:00:00 1970\n"
	unreadable := "From: dmarc@receiver.example\nContent-Type: application/xml\n\nno report\n\n"
	complaint := "Feedback-Type: abuse\n\n"
	for _, tt := range []struct {
		name     string
		input    string
		rejected dmarcd.Rejection
		want     bool
	}{
		{"a member", string(packtest.Zip("a.xml", opening+closing, "b.txt", "hello")), dmarcd.Rejection{Member: "a.xml"}, true},
		{"what is in a member", string(packtest.Zip("a.zip", string(packtest.Zip("a.xml", opening+closing)))), dmarcd.Rejection{Member: "a.zip"}, true},
		{"a member with a similar name", string(packtest.Zip("a.xml", opening+closing)), dmarcd.Rejection{Member: "a"}, false},
		{"a member that is still rejected", string(packtest.Zip("a.xml", opening+closing, "b.txt", "hello")), dmarcd.Rejection{Member: "b.txt"}, false},
		{"the whole message", string(packtest.Zip("a.xml", opening+closing)), dmarcd.Rejection{}, true},
		{"a failure report", failureMail("jane"), dmarcd.Rejection{Kind: dmarcd.KindFailure}, true},
		{"a complaint that is still rejected", complaint, dmarcd.Rejection{Kind: dmarcd.KindFailure}, false},
		{"what a failure report replaced", separator + failureMail("jane") + "\n" + separator + unreadable, dmarcd.Rejection{Member: "message-2"}, false},
		{
			"what a second failure report replaced",
			separator + failureMail("jane") + "\n" + separator + unreadable + separator + failureMail("joe"),
			dmarcd.Rejection{Member: "message-2"},
			false,
		},
		{"a whole message that a failure report replaced", separator + failureMail("jane") + "\n" + separator + unreadable, dmarcd.Rejection{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := acceptor(t)
			first := deliver(t, a, message([]byte(tt.input)))
			store := &rejectedStore{rejected: dmarcd.Rejected{Rejection: tt.rejected, Intake: dmarcd.IntakeUpload}, original: first.Original}
			settled, receipts, err := a.Retry(t.Context(), 1, store, 1)
			musttest.Do(t, err)
			if settled != tt.want || store.settled != tt.want {
				t.Errorf("got settled %t, %t want %t with the receipts %v", settled, store.settled, tt.want, receipts)
			}
		})
	}
}

var _ intake.RejectedStore = (*rejectedStore)(nil)
