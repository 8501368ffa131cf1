package unpack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func readAll(p *unpack.Part) error {
	_, err := io.Copy(io.Discard, p)
	return err
}

func TestWalkEndsWithTheErrorOf(t *testing.T) {
	t.Parallel()
	broken := errors.New("the line is dead")
	archive := zipped(t, "a.xml", report, "b.xml", report)

	t.Run("the visitor", func(t *testing.T) {
		t.Parallel()
		visits := 0
		err := new(unpack.Walker).Walk(t.Context(), bytes.NewReader(archive), unpack.DefaultLimits(), func(*unpack.Part) error {
			visits++
			return broken
		})
		if !errors.Is(err, broken) || visits != 1 {
			t.Errorf("got error %v after %d visits, want %v after 1", err, visits, broken)
		}
	})
	t.Run("the visitor of a failure report", func(t *testing.T) {
		t.Parallel()
		const mail = "Subject: failure\nContent-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/feedback-report\n\nFeedback-Type: auth-failure\n--b--\n"
		err := new(unpack.Walker).Walk(t.Context(), strings.NewReader(mail), unpack.DefaultLimits(), func(*unpack.Part) error { return broken })
		if !errors.Is(err, broken) {
			t.Errorf("got error %v, want %v", err, broken)
		}
	})
	t.Run("the reader, which is no damage", func(t *testing.T) {
		t.Parallel()
		for _, data := range [][]byte{archive, gzipped(t, report), []byte(report)} {
			r := io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(broken))
			if err := new(unpack.Walker).Walk(t.Context(), r, unpack.DefaultLimits(), readAll); !errors.Is(err, broken) {
				t.Errorf("got error %v, want %v", err, broken)
			}
		}
	})
	t.Run("the file, which is no damage", func(t *testing.T) {
		t.Parallel()
		file := brokenFile{bytes.NewReader(archive), broken}
		if err := new(unpack.Walker).Walk(t.Context(), file, unpack.DefaultLimits(), readAll); !errors.Is(err, broken) {
			t.Errorf("got error %v, want %v", err, broken)
		}
	})
	t.Run("the context, while a part is read", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := new(unpack.Walker).Walk(ctx, bytes.NewReader(gzipped(t, strings.Repeat(report, 1000))), unpack.DefaultLimits(), func(p *unpack.Part) error {
			cancel()
			return readAll(p)
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want %v", err, context.Canceled)
		}
	})
	t.Run("the folder for temporary files", func(t *testing.T) {
		t.Parallel()
		limits := unpack.DefaultLimits()
		limits.Folder = filepath.Join(t.TempDir(), "missing")
		r := iotest.HalfReader(bytes.NewReader(largeArchive(t)))
		if err := new(unpack.Walker).Walk(t.Context(), r, limits, readAll); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got error %v, want %v", err, fs.ErrNotExist)
		}
	})
}

// brokenFile can only be read from the beginning.
type brokenFile struct {
	*bytes.Reader

	err error
}

func (f brokenFile) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestLimits(t *testing.T) {
	t.Parallel()
	files := zipped(t, "a.xml", report, "b.xml", report, "c.xml", report)
	repeated := gzipped(t, report+strings.Repeat(" ", 4<<20))
	for _, test := range []struct {
		name  string
		data  []byte
		set   func(*unpack.Limits)
		want  unpack.Limit // "" if no limit is exceeded
		parts int          // number of visited parts
	}{
		{"input that just fits", []byte(report), func(l *unpack.Limits) { l.Input = int64(len(report)) }, "", 1},
		{"input a byte too long", []byte(report), func(l *unpack.Limits) { l.Input = int64(len(report)) - 1 }, unpack.LimitInput, 0},
		{"expanded that just fits", files, func(l *unpack.Limits) { l.Expanded = int64(3 * len(report)) }, "", 3},
		{"expanded a byte too long", files, func(l *unpack.Limits) { l.Expanded = int64(3*len(report)) - 1 }, unpack.LimitExpanded, 2},
		{"members that just fit", files, func(l *unpack.Limits) { l.Members = 3 }, "", 3},
		{"a member too many", files, func(l *unpack.Limits) { l.Members = 2 }, unpack.LimitMembers, 0},
		{"members that just fit, in an archive", zipped(t, "in.zip", string(files)), func(l *unpack.Limits) { l.Members = 4 }, "", 3},
		{"a member too many, in an archive", zipped(t, "in.zip", string(files)), func(l *unpack.Limits) { l.Members = 3 }, unpack.LimitMembers, 0},
		{"nesting that just fits", gzipped(t, string(files)), func(l *unpack.Limits) { l.Nesting = 2 }, "", 3},
		{"nesting too deep", gzipped(t, string(files)), func(l *unpack.Limits) { l.Nesting = 1 }, unpack.LimitNesting, 1},
		{"a ratio that is too high but of little", repeated, func(l *unpack.Limits) { l.RatioFrom = 10 << 20 }, "", 1},
		{"a ratio that is too high", repeated, func(*unpack.Limits) {}, unpack.LimitRatio, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			limits := unpack.DefaultLimits()
			test.set(&limits)
			for _, r := range []io.Reader{bytes.NewReader(test.data), iotest.HalfReader(bytes.NewReader(test.data))} {
				parts := 0
				var reported error
				err := new(unpack.Walker).Walk(t.Context(), r, limits, func(p *unpack.Part) error {
					err := errors.Join(p.Err, readAll(p))
					if reported == nil {
						reported = err
					}
					parts++
					return nil
				})
				if reported == nil {
					reported = err
				}
				var limit *unpack.LimitError
				if errors.As(reported, &limit) != (test.want != "") || limit != nil && limit.Limit != test.want {
					t.Errorf("got %v, want limit %q", reported, test.want)
				}
				if test.want != "" && !errors.Is(reported, dmarcd.ErrLimit) {
					t.Errorf("got %v, want a dmarcd.ErrLimit", reported)
				}
				if parts != test.parts {
					t.Errorf("got %d parts, want %d", parts, test.parts)
				}
			}
		})
	}
}

// TestOneBombDoesNotStopTheRest checks that a limit on one member is reported for that
// member only.
func TestOneBombDoesNotStopTheRest(t *testing.T) {
	t.Parallel()
	bomb := report + strings.Repeat(" ", 4<<20)
	got, err := list(t.Context(), bytes.NewReader(zipped(t, "bomb.xml", bomb, "a.xml", report)), unpack.DefaultLimits())
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
	if len(got) != 2 || !strings.HasSuffix(got[0], "over the limit of 200 for compression ratio") || got[1] != "aggregate a.xml, 351 bytes" {
		t.Errorf("got %q, want the ratio told for the first and the second in full", got)
	}
}

// largeArchive returns an archive that is too large to be spooled in memory.
func largeArchive(t *testing.T) []byte {
	t.Helper()
	noise := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(noise) // never fails
	return zipped(t, "noise", string(noise), "a.xml", report)
}

func TestLargeArchiveFromStream(t *testing.T) {
	t.Parallel()
	limits := unpack.DefaultLimits()
	limits.Folder = t.TempDir()
	got, err := list(t.Context(), iotest.HalfReader(bytes.NewReader(largeArchive(t))), limits)
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
	want := []string{"rejected noise: this is binary data, not a report", "aggregate a.xml, 351 bytes"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got (+) against want (-):\n%s", diff)
	}
	left := musttest.Get(os.ReadDir(limits.Folder))(t)
	if len(left) > 0 {
		t.Errorf("got %v left behind, want nothing", left)
	}
}

// TestInputIsNotReadBeyondItsLimit checks that a byte more than the limit is read at most.
func TestInputIsNotReadBeyondItsLimit(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	limits := unpack.DefaultLimits()
	limits.Input = limit
	text := strings.NewReader(report + strings.Repeat(" ", 10*limit))
	before := text.Len()
	err := new(unpack.Walker).Walk(t.Context(), struct{ io.Reader }{text}, limits, readAll)
	if read := before - text.Len(); !errors.Is(err, dmarcd.ErrLimit) || read != limit+1 {
		t.Errorf("got %d bytes read and %v, want %d and the limit", read, err, limit+1)
	}
}

// TestStoredMembersOfCutArchive finds the member after a stored one of unknown length, at
// every position relative to the block size.
func TestStoredMembersOfCutArchive(t *testing.T) {
	t.Parallel()
	const block = 32 << 10
	for _, length := range []int{11, block - 4, block - 3, block - 2, block - 1, block, block + 1, 2*block - 7, 2*block - 6, 2*block - 5, 2*block - 4, 2*block - 3, 2*block - 2} {
		data := withoutDirectory(storedZip(t, "long.xml", "<feedback>"+strings.Repeat("n", length-len("<feedback>")), "a.xml", report))
		got, err := list(t.Context(), bytes.NewReader(data), unpack.DefaultLimits())
		if err != nil || len(got) != 2 || !strings.HasPrefix(got[0], fmt.Sprintf("aggregate long.xml, %d bytes", length)) ||
			!strings.HasPrefix(got[1], "aggregate a.xml, 351 bytes") {
			t.Errorf("behind %d bytes: got %q, %v; want both", length, got, err)
		}
	}
}

// TestPartsNeedNotBeRead checks that an unread part does not hide the next one.
func TestPartsNeedNotBeRead(t *testing.T) {
	t.Parallel()
	data := musttest.Get(os.ReadFile(filepath.Join("testdata", "several-reports.eml")))(t)
	joined := append(gzipped(t, report), gzipped(t, report)...)
	for _, test := range []struct {
		name string
		data []byte
		want int
	}{
		{"mail", data, 3},
		{"joined gzip", joined, 2},
		{"zip", zipped(t, "a.xml", report, "b.xml", report), 2},
		{"zip without its directory", withoutDirectory(zipped(t, "a.xml", report, "b.xml", report)), 2},
	} {
		got := 0
		err := new(unpack.Walker).Walk(t.Context(), bytes.NewReader(test.data), unpack.DefaultLimits(), func(*unpack.Part) error {
			got++
			return nil
		})
		if err != nil || got != test.want {
			t.Errorf("%s: got %d parts and error %v, want %d", test.name, got, err, test.want)
		}
	}
}

func TestContentIsUnchanged(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"plain-as-rfc9990.eml", "quoted-printable.eml", "base64-broken.eml", "forwarded-in-base64.eml", "no-empty-line.eml"} {
		data := musttest.Get(os.ReadFile(filepath.Join("testdata", file)))(t)
		err := new(unpack.Walker).Walk(t.Context(), bytes.NewReader(data), unpack.DefaultLimits(), func(p *unpack.Part) error {
			got, err := io.ReadAll(p)
			if diff := cmp.Diff(report, string(got)); diff != "" {
				t.Errorf("%s: got (+) against want (-):\n%s", file, diff)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: got error %v, want none", file, err)
		}
	}
}

func TestDateOfAFailureReport(t *testing.T) {
	t.Parallel()
	const mail = "Date: Mon, 3 Nov 2025\r\n\t10:00:00 +0100\r\nContent-Type: message/feedback-report\r\nDate: again\r\n\r\nFeedback-Type: auth-failure\r\n"
	err := new(unpack.Walker).Walk(t.Context(), strings.NewReader(mail), unpack.DefaultLimits(), func(p *unpack.Part) error {
		if want := "Mon, 3 Nov 2025 10:00:00 +0100"; p.Failure.Date != want {
			t.Errorf("got %q, want %q", p.Failure.Date, want)
		}
		return nil
	})
	musttest.Do(t, err)
}
