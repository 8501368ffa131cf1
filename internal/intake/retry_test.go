package intake_test

import (
	"context"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

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
