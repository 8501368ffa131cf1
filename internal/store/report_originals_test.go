package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// chunk is the size of a chunk of an original.
const chunk = 256 << 10

// content returns n bytes without repetitions.
func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

func TestOriginals(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		for i, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 5*chunk + 7} {
			delivery := storetest.Delivery(report(fmt.Sprint(i), ours, storetest.Passed(ours, 1)))
			delivery.Original = storetest.Original(content(size))
			delivery.Rejections = []dmarcd.Rejection{{Reason: "A test."}}
			id := in.deliver(delivery)[0].ID
			rejected := musttest.Get(in.team.Rejected(in.Context(), 0, 1))(in)
			for what, read := range map[string]func() (dmarcd.StoredOriginal, error){
				"report":   func() (dmarcd.StoredOriginal, error) { return in.team.ReportOriginal(in.Context(), id) },
				"rejected": func() (dmarcd.StoredOriginal, error) { return in.team.RejectedOriginal(in.Context(), rejected[0].ID) },
			} {
				original := musttest.Get(read())(in)
				got := musttest.Get(io.ReadAll(iotest.OneByteReader(original.Packed)))(in)
				if original.Size != int64(size) || !bytes.Equal(got, content(size)) {
					in.Errorf("%s of %d bytes: got %d bytes, said to be %d", what, size, len(got), original.Size)
				}
			}
		}
	})
}

func TestOriginalThatCannotBeRead(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		for _, readable := range []int64{0, 1, chunk, 2 * chunk} {
			delivery := storetest.Delivery(report("1", ours, storetest.Passed(ours, 1)))
			delivery.Original.Packed = func() io.Reader {
				return io.MultiReader(io.LimitReader(bytes.NewReader(content(3*chunk)), readable), iotest.ErrReader(errUnreadable))
			}
			if _, err := in.team.Receive(in.Context(), []*dmarcd.Delivery{delivery}); !errors.Is(err, errUnreadable) {
				in.Errorf("after %d bytes: got %v, want the error of the original", readable, err)
			}
		}
		in.wantCounted(map[string]dmarcd.Summary{ours: {}})
		in.purge()
		if n := in.rows("reports") + in.rows("originals") + in.rows("original_chunks") + in.rows("unused_chunks"); n != 0 {
			in.Errorf("%d rows were kept", n)
		}
	})
}

// TestOriginalsGoWithWhatTheyBrought removes all items of a delivery one by one; the original goes
// with the last.
func TestOriginalsGoWithWhatTheyBrought(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add("a.example", "b.example")
		delivery := storetest.Delivery(report("1", "a.example", storetest.Passed("a.example", 1)), report("2", "b.example", storetest.Passed("b.example", 1)))
		delivery.Original = storetest.Original(content(3 * chunk))
		delivery.Rejections = []dmarcd.Rejection{{Member: "x", Reason: "A test."}, {Member: "y", Reason: "A test."}}
		in.deliver(delivery)
		in.deliver(delivery)
		wantStored := func(what string, originals, chunks int) {
			in.Helper()
			if got := in.rows("originals"); got != originals {
				in.Errorf("%s: got %d originals, want %d", what, got, originals)
			}
			if got := in.rows("original_chunks"); got != chunks {
				in.Errorf("%s: got %d chunks, want %d", what, got, chunks)
			}
		}
		wantStored("sent twice", 1, 2)
		in.delete("a.example")
		in.purge()
		wantStored("without one report", 1, 2)
		rejected := musttest.Get(in.team.Rejected(in.Context(), 0, 10))(in)
		for _, r := range rejected {
			in.must(in.team.SettleRejected(in.Context(), r.ID))
		}
		wantStored("without what was rejected", 1, 2)
		in.delete("b.example")
		wantStored("before the purge", 1, 2)
		in.purge()
		wantStored("without anything", 0, 0)

		delivery.Reports = nil
		in.deliver(delivery)
		wantStored("sent again", 1, 2)
		rejected = musttest.Get(in.team.Rejected(in.Context(), 0, 10))(in)
		for _, r := range rejected {
			in.must(in.team.SettleRejected(in.Context(), r.ID))
		}
		in.purge()
		wantStored("settled", 0, 0)
		if err := in.team.SettleRejected(in.Context(), rejected[0].ID); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("settled twice: got %v, want ErrNotFound", err)
		}
	})
}

func TestDuplicatesStoreNoBytes(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		same := report("1", ours, storetest.Passed(ours, 1))
		in.receive(same)
		wrapped := storetest.Delivery(same)
		wrapped.Original = storetest.Original([]byte("the same in another wrapping"))
		in.deliver(wrapped)
		if got := in.rows("originals"); got != 1 {
			in.Errorf("got %d originals, want 1", got)
		}
	})
}
