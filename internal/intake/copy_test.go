package intake_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// random returns bytes that do not compress.
func random(n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(b) // it never fails
	return b
}

func TestOriginal(t *testing.T) {
	t.Parallel()
	report := []byte(opening + strings.Repeat(record("192.0.2.1", 1, "pass"), 1000) + closing)
	for _, tt := range []struct {
		name     string
		content  []byte
		mostSize int // of the packed form
	}{
		{"nothing", nil, 20},
		{"a report", report, len(report) / 20},
		{"much that does not compress", random(3 << 20), 3<<20 + 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := acceptor(t)
			for range 2 { // the second time with a reused encoder
				d := deliver(t, a, message(tt.content))
				if want := dmarcd.Hash(sha256.Sum256(tt.content)); d.Original.Hash != want || d.Original.Size != int64(len(tt.content)) {
					t.Errorf("got hash %x of %d bytes, want %x of %d", d.Original.Hash, d.Original.Size, want, len(tt.content))
				}
				for range 2 { // each reads from the start
					packed, err := io.ReadAll(d.Original.Packed())
					if err != nil || len(packed) > tt.mostSize {
						t.Errorf("got %d bytes and error %v, want at most %d", len(packed), err, tt.mostSize)
					}
					got, err := io.ReadAll(intake.Unpack(bytes.NewReader(packed)))
					if err != nil || !bytes.Equal(got, tt.content) {
						t.Errorf("got %d bytes and error %v, want the %d that were sent", len(got), err, len(tt.content))
					}
				}
			}
			left, err := os.ReadDir(a.Limits.Containers.Folder)
			if err != nil || len(left) > 0 {
				t.Errorf("got files %v and error %v, want none with a name", left, err)
			}
		})
	}
}

func TestUnpackRejects(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	// A larger window than ours would need more memory to read.
	encoder := musttest.Get(zstd.NewWriter(nil, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false)))(t)
	var greedy bytes.Buffer
	encoder.Reset(&greedy)
	musttest.Get(io.Copy(encoder, bytes.NewReader(random(9<<20))))(t)
	musttest.Do(t, encoder.Close())
	for _, tt := range []struct {
		name   string
		packed io.Reader
		want   error // nil for any
	}{
		{"other bytes", strings.NewReader("hello"), nil},
		{"a form that takes much memory", &greedy, zstd.ErrWindowSizeExceeded},
		{"a broken reader", iotest.ErrReader(broken), broken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := io.ReadAll(intake.Unpack(tt.packed))
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %d bytes and error %v, want an error %v", len(got), err, tt.want)
			}
		})
	}
}

func TestCopyOf(t *testing.T) {
	t.Parallel()
	broken := errors.New("the line is cut")
	for _, size := range []int{0, 1, 1 << 20, 1<<20 + 1, 3 << 20} {
		content := random(size)
		c, err := intake.CopyOf(iotest.HalfReader(bytes.NewReader(content)), t.TempDir(), int64(size))
		if err != nil || c.Size() != int64(size) {
			t.Fatalf("%d bytes: got a copy of %d and error %v, want all", size, c.Size(), err)
		}
		got, err := io.ReadAll(c.Reader())
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes: got %d and error %v, want all", size, len(got), err)
		}
		end := make([]byte, 10)
		n, err := c.ReadAt(end, int64(size)-int64(min(size, 5)))
		if !errors.Is(err, io.EOF) || !bytes.Equal(end[:n], content[size-min(size, 5):]) {
			t.Errorf("%d bytes: got %x and error %v at the end, want the last five and %v", size, end[:n], err, io.EOF)
		}
		c.Close()
		if size == 0 {
			continue
		}
		if _, err := intake.CopyOf(bytes.NewReader(content), t.TempDir(), int64(size)-1); !errors.Is(err, dmarcd.ErrLimit) {
			t.Errorf("%d bytes: got error %v over the limit, want %v", size, err, dmarcd.ErrLimit)
		}
	}
	if _, err := intake.CopyOf(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)), "", 10); !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
}
