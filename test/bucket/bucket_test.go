package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/blobs"
	"github.com/dmarcd/dmarcd/internal/cold"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// server is the variable that names the program.
const server = "DMARCD_TEST_S3"

// serve starts the server with a bucket, and returns its address and the folder of the objects.
func serve(t *testing.T) (address, folder string) {
	t.Helper()
	root := t.TempDir()
	folder = filepath.Join(root, "objects", "records")
	for _, dir := range []string{folder, filepath.Join(root, "attributes")} {
		musttest.Do(t, os.MkdirAll(dir, 0o700))
	}
	free := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	address = free.Addr().String()
	musttest.Do(t, free.Close())
	ctx, stop := context.WithCancel(context.Background())
	var log bytes.Buffer
	command := exec.CommandContext(ctx, os.Getenv(server), "--port", address, "--access", "key", "--secret", "secret", "--region", "eu-test",
		"posix", "--sidecar", filepath.Join(root, "attributes"), filepath.Join(root, "objects"))
	command.Stdout, command.Stderr = &log, &log
	musttest.Do(t, command.Start())
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // it was killed
		if t.Failed() {
			t.Logf("server:\n%s", &log)
		}
	})
	return address, folder
}

func open(t *testing.T, url string) *blobs.Bucket {
	t.Helper()
	return musttest.Get(blobs.Open(url, nil))(t)
}

// objects returns the files of a team.
func objects(t *testing.T, folder string, team dmarcd.TeamID) []string {
	t.Helper()
	return musttest.Get(filepath.Glob(filepath.Join(folder, "dmarcd", "cold", team.String(), "*.parquet")))(t)
}

func TestOldRecordsInABucket(t *testing.T) {
	t.Parallel()
	if os.Getenv(server) == "" {
		t.Log(server + " is not set: make test-bucket builds the server, and sets it")
		return
	}
	address, folder := serve(t)
	const path = "/records/dmarcd?region=eu-test"
	bucket := open(t, "http://key:secret@"+address+path)
	for end := time.Now().Add(time.Minute); ; { // the client pauses between its attempts
		_, err := bucket.Get(t.Context(), "none", 10)
		if errors.Is(err, dmarcd.ErrNotFound) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not answer: %v", err)
		}
	}
	t.Run("errors", func(t *testing.T) {
		for url, want := range map[string]string{
			"http://key:other@" + address + path:                       "check the host, the key, the secret and the region in DMARCD_BLOBS",
			"http://key:secret@" + address + "/records":                "check the host, the key, the secret and the region in DMARCD_BLOBS",
			"http://key:secret@" + address + "/another?region=eu-test": "create the bucket",
		} {
			if err := open(t, url).Put(t.Context(), "a", []byte("data")); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", url, err, want)
			}
		}
		if err := bucket.Delete(t.Context(), "none"); err != nil {
			t.Error(err)
		}
		large := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
		musttest.Do(t, bucket.Put(t.Context(), "large", large))
		if got, err := bucket.Get(t.Context(), "large", int64(len(large))); err != nil || !bytes.Equal(got, large) {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		if err := bucket.Delete(t.Context(), "large"); err != nil {
			t.Error(err)
		}
	})
	storetest.Each(t, func(t *testing.T, db storetest.DB) { freeze(t, db, bucket, folder) })
}

// freeze stores records, moves them into the bucket, and removes them.
func freeze(t *testing.T, db storetest.DB, bucket *blobs.Bucket, folder string) {
	t.Helper()
	now := time.Now()
	s := db.Open(t, store.Options{Now: func() time.Time { return now }, Blobs: bucket})
	created := musttest.Get(s.CreateTeam(t.Context(), "a", true))(t)
	team := s.Team(created.ID)
	musttest.Get(team.AddDomains(t.Context(), []string{"example.com"}, time.Time{}))(t)
	var ids []dmarcd.ReportID
	for i := range 3 {
		receipts, err := team.Receive(t.Context(), []*dmarcd.Delivery{storetest.Delivery(storetest.Aggregate(fmt.Sprint(i), "example.com", dmarcd.DayOf(now),
			storetest.Passed("example.com", 5), storetest.Failed("www.example.com", 2)))})
		musttest.Do(t, err)
		ids = append(ids, receipts[0][0].ID)
	}
	read := func(s *store.Store) (all []store.Record) {
		t.Helper()
		for _, id := range ids {
			records, _, err := s.Team(created.ID).Records(t.Context(), id, store.RecordCursor{}, 10)
			musttest.Do(t, err)
			all = append(all, records...)
		}
		if problem := musttest.Get(s.Integrity(t.Context()))(t); problem != "" {
			t.Error(problem)
		}
		return all
	}
	step := func() {
		t.Helper()
		storetest.All(t, func(ctx context.Context) (bool, error) { return s.Freeze(ctx, 30*24*time.Hour) })
	}
	want := read(s)
	now = now.Add(60 * 24 * time.Hour)
	step()
	if got := len(objects(t, folder, created.ID)); got != 1 {
		t.Fatalf("got %d objects, want 1", got)
	}
	other := db.Open(t, store.Options{Now: func() time.Time { return now }, Blobs: bucket}) // has no cache
	if diff := cmp.Diff(want, read(other), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}

	// A deleted report leaves the bucket.
	musttest.Do(t, team.DeleteReport(t.Context(), ids[0], dmarcd.AuditEntry{Action: "report.delete"}))
	storetest.All(t, s.Purge)
	ids, want = ids[1:], want[2:]
	for range 2 {
		now = now.Add(2 * time.Hour)
		step()
	}
	left := objects(t, folder, created.ID)
	if len(left) != 1 {
		t.Fatalf("got %q, want one object", left)
	}
	if diff := cmp.Diff(want, read(s), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}

	// A damaged object is an error.
	musttest.Do(t, os.WriteFile(left[0], []byte("other"), 0o600))
	broken := db.Open(t, store.Options{Now: func() time.Time { return now }, Blobs: bucket})
	if _, _, err := broken.Team(created.ID).Records(t.Context(), ids[0], store.RecordCursor{}, 10); !errors.Is(err, cold.ErrDamaged) {
		t.Errorf("got %v, want %v", err, cold.ErrDamaged)
	}
	if problem := musttest.Get(broken.Integrity(t.Context()))(t); !strings.Contains(problem, cold.ErrDamaged.Error()) {
		t.Errorf("got the problem %q", problem)
	}
}
