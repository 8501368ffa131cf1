package files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/files"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

func report(id string) string {
	return `<feedback><report_metadata><org_name>receiver.example</org_name><report_id>` + id + `</report_id>` +
		`<date_range><begin>1767225600</begin><end>1767311999</end></date_range></report_metadata>` +
		`<policy_published><domain>example.com</domain><p>none</p></policy_published>` +
		`<record><row><source_ip>192.0.2.1</source_ip><count>1</count></row></record></feedback>`
}

// mailOf returns a mail with a report, in mbox form.
func mailOf(id string) string {
	return "From x@example.org Mon Nov  3 10:00:00 2025\nSubject: " + id + "\nContent-Type: text/xml\n\n" + report(id) + "\n\n"
}

func acceptor(t *testing.T) *intake.Acceptor {
	t.Helper()
	a := &intake.Acceptor{
		Limits: intake.DefaultLimits(), Encode: shape.EncodeDetail,
		Recovered: func(e *recovered.Error) { t.Error(e) },
	}
	a.Limits.Containers.Folder = t.TempDir()
	return a
}

// fakeStore is a DeliveryStore that records the ids of reports and can be made to fail.
type fakeStore struct {
	mu     sync.Mutex
	ids    []string
	steps  int
	broken func(id string) error
}

func (k *fakeStore) Receive(_ context.Context, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.steps++
	var ids []string
	receipts := make([][]dmarcd.Receipt, len(deliveries))
	for i, d := range deliveries {
		for _, r := range d.Reports {
			if k.broken != nil {
				if err := k.broken(r.ExternalID); err != nil {
					return nil, err
				}
			}
			ids = append(ids, r.ExternalID)
			receipts[i] = append(receipts[i], dmarcd.Receipt{Status: dmarcd.Stored, ExternalID: r.ExternalID})
		}
		for _, r := range d.Rejections {
			receipts[i] = append(receipts[i], dmarcd.Receipt{Status: dmarcd.StatusRejected, Reason: r.Reason})
		}
	}
	k.ids = append(k.ids, ids...)
	return receipts, nil
}

// run imports a folder. It returns a line for each result, and the sum of their bytes.
func run(t *testing.T, i *files.Importer, folder string) (lines []string, bytes int64, err error) {
	t.Helper()
	i.OnResult = func(r files.Result) {
		bytes += r.Bytes
		name, relErr := filepath.Rel(folder, r.Name)
		if relErr != nil {
			t.Error(relErr)
		}
		line := filepath.ToSlash(name) + ":"
		for _, receipt := range r.Receipts {
			line += " " + string(receipt.Status) + " " + receipt.ExternalID + receipt.Reason
		}
		if r.Err != nil {
			line += " " + r.Err.Error()
		}
		if r.Before {
			line += " before"
		}
		lines = append(lines, line)
	}
	list := files.List(folder)
	if len(list.Unread) > 0 {
		t.Fatal(list.Unread)
	}
	err = i.Run(t.Context(), list.Files)
	if err == nil && bytes != list.Bytes {
		t.Errorf("got %d bytes told, want the %d of the listing", bytes, list.Bytes)
	}
	return lines, bytes, err
}

func TestImport(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.xml", report("1"), "b.txt", "hello", "box", mailOf("2")+mailOf("3")+
		"From x@example.org Mon Nov  3 10:00:00 2025\nSubject: long\n\n"+strings.Repeat("x", 3000)+"\n\n"+mailOf("4"),
		"long.xml", strings.Repeat("x", 3000), "mail/cur/1", mailOf("5")[44:], "mail/new/", "", "mail/tmp/", "")
	a := acceptor(t)
	a.Limits.Containers.Input = 2000
	k := &fakeStore{}
	got, _, err := run(t, &files.Importer{Acceptor: a, Store: k}, folder)
	musttest.Do(t, err)
	want := []string{
		"a.xml: stored 1",
		"b.txt: rejected this is text, not a report",
		"box, mail 1: stored 2",
		"box, mail 2: stored 3",
		"box, mail 3: over the limit of 2000 for input bytes",
		"box, mail 4: stored 4",
		"box:",
		"long.xml: over the limit of 2000 for input bytes",
		"mail/cur/1: stored 5",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5"}, k.ids); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestImportStoresWhatItCan imports files: the database rejects one, and the quota is used up
// for another.
func TestImportStoresWhatItCan(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.xml", report("1"), "b.xml", report("odd"), "c.xml", report("2"), "d.xml", report("full"), "e.xml", report("3"))
	full := &dmarcd.QuotaError{Name: dmarcd.QuotaReports, Max: 3}
	k := &fakeStore{broken: func(id string) error {
		return map[string]error{"odd": errors.New("the row is too long"), "full": full}[id]
	}}
	got, _, err := run(t, &files.Importer{Acceptor: acceptor(t), Store: k}, folder)
	musttest.Do(t, err)
	want := []string{
		"a.xml: stored 1", "b.xml: rejected the report could not be stored: the row is too long", "c.xml: stored 2", "d.xml: " + full.Error(), "e.xml: stored 3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestImportReportsMissingFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.xml", report("1"), "b.xml", report("2"))
	list := files.List(folder)
	musttest.Do(t, os.Remove(list.Files[0].Path))
	var results []files.Result
	i := &files.Importer{Acceptor: acceptor(t), Store: &fakeStore{}, OnResult: func(r files.Result) { results = append(results, r) }}
	musttest.Do(t, i.Run(t.Context(), list.Files))
	if len(results) != 2 || !errors.Is(results[0].Err, os.ErrNotExist) || results[1].Err != nil {
		t.Errorf("got %v, want an error of the first alone", results)
	}
}

// TestImportGoesOn interrupts an import and checks that the next one resumes there, and that
// the one after that reads everything.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	folder, data := t.TempDir(), t.TempDir()
	var box strings.Builder
	for n := range 200 {
		box.WriteString(mailOf(fmt.Sprint("m", n)))
	}
	write(t, folder, "a.xml", report("a"), "box", box.String(), "c.xml", report("c"))
	stop := fmt.Errorf("%w: the database is gone", dmarcd.ErrTemporary)
	k := &fakeStore{broken: func(id string) error {
		if id == "m150" {
			return stop
		}
		return nil
	}}
	journal := openJournal(t, data)
	i := &files.Importer{Acceptor: acceptor(t), Store: k, Journal: journal}
	if _, _, err := run(t, i, folder); !errors.Is(err, stop) {
		t.Fatalf("got error %v, want %v", err, stop)
	}
	musttest.Do(t, journal.Close())
	stored := len(k.ids)
	if stored < 100 {
		t.Fatalf("got %d reports kept before it stopped, want most of them", stored)
	}

	// The process crashed during a write.
	file := musttest.Get(os.OpenFile(filepath.Join(data, "journal"), os.O_APPEND|os.O_WRONLY, 0))(t)
	musttest.Get(io.WriteString(file, `{"path":"`))(t)
	musttest.Do(t, file.Close())

	k.broken = nil
	journal = openJournal(t, data)
	i.Journal = journal
	lines, _, err := run(t, i, folder)
	musttest.Do(t, err)
	if len(k.ids) != 202 || lines[0] != "a.xml: before" {
		t.Errorf("got %d reports and first %q, want all 202 once and the first file passed over", len(k.ids), lines[0])
	}
	want := map[string]bool{}
	for _, id := range k.ids {
		want[id] = true
	}
	if len(want) != 202 {
		t.Errorf("got %d different reports, want 202", len(want))
	}

	musttest.Do(t, journal.Remove())
	i.Journal = openJournal(t, data)
	if _, _, err := run(t, i, folder); err != nil || len(k.ids) != 404 {
		t.Errorf("got %d reports and error %v, want all read again", len(k.ids), err)
	}
}

func TestImportReadsWhatHasChanged(t *testing.T) {
	t.Parallel()
	folder, data := t.TempDir(), t.TempDir()
	write(t, folder, "a.xml", report("1"), "b.xml", report("2"))
	k := &fakeStore{}
	i := &files.Importer{Acceptor: acceptor(t), Store: k}
	for range 2 {
		i.Journal = openJournal(t, data)
		if _, _, err := run(t, i, folder); err != nil {
			t.Fatal(err)
		}
		write(t, folder, "b.xml", report("22"))
	}
	if diff := cmp.Diff([]string{"1", "2", "22"}, k.ids); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestImportEndsWithTheContext(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.xml", report("1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := &fakeStore{}
	i := &files.Importer{Acceptor: acceptor(t), Store: k, OnResult: func(r files.Result) { t.Errorf("got %v, want nothing", r) }}
	if err := i.Run(ctx, files.List(folder).Files); !errors.Is(err, context.Canceled) || len(k.ids) != 0 {
		t.Errorf("got %v and error %v, want nothing and %v", k.ids, err, context.Canceled)
	}
}

// TestImportStopsWithoutSpace checks that a full disk stops the import, and is not reported as
// an error of each file.
func TestImportStopsWithoutSpace(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2<<20)
	for _, tt := range []struct{ name, content string }{
		{"a mailbox", mailOf("1") + "From x@example.org Mon Nov  3 10:00:00 2025\nSubject: long\n\n" + long + "\n"},
		{"a file", strings.Replace(report("1"), "<record>", strings.Repeat("<record><row><count>1</count></row></record>", 30_000)+"<record>", 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			write(t, folder, "a", tt.content)
			a := acceptor(t)
			a.Limits.Containers.Folder = filepath.Join(folder, "missing")
			_, _, err := run(t, &files.Importer{Acceptor: a, Store: &fakeStore{}}, folder)
			if !errors.Is(err, dmarcd.ErrTemporary) || !errors.Is(err, os.ErrNotExist) {
				t.Errorf("got error %v, want a temporary one about the folder", err)
			}
		})
	}
}

// TestBatches checks that many short files form one batch, and long ones several.
func TestBatches(t *testing.T) {
	t.Parallel()
	long := strings.Replace(report("long"), "<record>", strings.Repeat("<record><row><count>1</count></row></record>", 5000)+"<record>", 1)
	for _, tt := range []struct {
		name    string
		content string
		files   int
		want    int
	}{
		{"short ones", report("1"), 100, 2},
		{"long ones", long, 4, 2},
		{"none", "", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for n := range tt.files {
				write(t, folder, fmt.Sprintf("%03d.xml", n), tt.content)
			}
			k := &fakeStore{}
			if _, _, err := run(t, &files.Importer{Acceptor: acceptor(t), Store: k}, folder); err != nil {
				t.Fatal(err)
			}
			if len(k.ids) != tt.files || k.steps != tt.want {
				t.Errorf("got %d reports in %d steps, want %d in %d", len(k.ids), k.steps, tt.files, tt.want)
			}
		})
	}
}

// TestInvalidPartsDoNotPileUp has a file of another tool with many parts that cannot be used.
func TestInvalidPartsDoNotPileUp(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a", "a dump")
	var reported atomic.Int64
	i := &files.Importer{
		Acceptor: acceptor(t), Store: &fakeStore{}, OnResult: func(files.Result) { reported.Add(1) },
		Split: func(io.Reader) iter.Seq2[func(io.Writer) error, error] {
			return func(yield func(func(io.Writer) error, error) bool) {
				for range 10 << 10 {
					if !yield(nil, dmarcd.ErrInvalid) {
						return
					}
				}
				if reported.Load() == 0 {
					t.Error("all errors are in memory at the end of the file")
				}
			}
		},
	}
	musttest.Do(t, i.Run(t.Context(), files.List(folder).Files))
	if got := reported.Load(); got != 10<<10+1 {
		t.Errorf("got %d results, want one for each part and the end", got)
	}
}

func openJournal(t *testing.T, folder string) *files.Journal {
	t.Helper()
	j := musttest.Get(files.OpenJournal(filepath.Join(folder, "journal")))(t)
	t.Cleanup(func() { _ = j.Close() }) // the test may have closed it
	return j
}
