package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cold"
)

// Blobs is a bucket of objects.
type Blobs interface {
	Put(ctx context.Context, name string, data []byte) error
	// Get returns an object of up to limit bytes, or dmarcd.ErrNotFound.
	Get(ctx context.Context, name string, limit int64) ([]byte, error)
	// Delete removes an object; that there is none is not an error.
	Delete(ctx context.Context, name string) error
}

// errNoBlob is an object that a block refers to and that the bucket does not have.
var errNoBlob = errors.New("its object is not in the bucket (DMARCD_BLOBS)")

// errNoBucket is the error where a bucket is needed.
var errNoBucket = errors.New("old records are in a bucket: set DMARCD_BLOBS to the bucket that has them")

// blockBytes returns a block, from the bucket or the database.
func (t *Team) blockBytes(ctx context.Context, read tx, b coldBlock) (block []byte, err error) {
	if b.blob != "" {
		return t.store.blob(ctx, b)
	}
	err = read.queryRow(ctx, `SELECT block FROM cold_blocks WHERE team_id = $1 AND id = $2 AND n = $3`, []any{t.id, b.id, b.n}, &block)
	return block, err
}

// blob returns a block from the bucket.
func (s *Store) blob(ctx context.Context, b coldBlock) ([]byte, error) {
	if s.options.Blobs == nil {
		return nil, errNoBucket
	}
	block, err := s.options.Blobs.Get(ctx, b.blob, b.bytes)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil, fmt.Errorf("%s: %w", b.blob, errNoBlob)
	}
	return block, err
}

// putBlob puts a block into the bucket, if there is one, and returns its name and what is left
// for the database. The name is in unused_blobs first: an object that no block refers to, after
// a crash, is removed.
func (w *coldWriter) putBlob(ctx context.Context, block []byte) (name string, rest []byte, err error) {
	t := w.team
	if t.store.options.Blobs == nil {
		return "", block, nil
	}
	name = fmt.Sprintf("cold/%s/%x-%d.parquet", t.id, w.id, w.written)
	_, err = t.exec(ctx, `INSERT INTO unused_blobs (team_id, blob, lease_until) VALUES ($1, $2, $3)`, t.id, name, unix(t.store.now().Add(coldLease)))
	if err != nil {
		return "", nil, err
	}
	return name, []byte{}, t.store.options.Blobs.Put(ctx, name, block)
}

// useBlob has an object referred to, in the transaction that writes its block.
func (t *Team) useBlob(ctx context.Context, tx tx, name string) error {
	if name == "" {
		return nil
	}
	return tx.execOr(ctx, errBlobRemoved, `DELETE FROM unused_blobs WHERE team_id = $1 AND blob = $2`, t.id, name)
}

var errBlobRemoved = fmt.Errorf("%w: an object of the bucket was removed while its block was written", dmarcd.ErrTemporary)

// leaveBlobs leaves the objects of a group to removeBlobs, after the time of its last readers.
func (t *Team) leaveBlobs(ctx context.Context, tx tx, id int64) error {
	_, err := tx.exec(ctx, `INSERT INTO unused_blobs (team_id, blob, lease_until)
		SELECT team_id, blob, $3 FROM cold_blocks WHERE team_id = $1 AND id = $2 AND blob <> ''`, t.id, id, unix(t.store.now().Add(coldLease)))
	return err
}

// blobsPerStep is how many objects are removed in a step.
const blobsPerStep = 100

// removeBlobs removes objects that no block refers to, and reports whether there may be more.
func (t *Team) removeBlobs(ctx context.Context, now int64) (more bool, err error) {
	names, err := collectRead(ctx, t.store, `SELECT blob FROM unused_blobs WHERE team_id = $1 AND lease_until <= $2 ORDER BY blob LIMIT $3`,
		[]any{t.id, now, blobsPerStep}, scanValue[string])
	if err != nil || len(names) == 0 {
		return false, err
	}
	if t.store.options.Blobs == nil {
		return false, errNoBucket
	}
	for _, name := range names {
		if err := t.store.options.Blobs.Delete(ctx, name); err != nil {
			return false, err
		}
		if _, err := t.exec(ctx, `DELETE FROM unused_blobs WHERE team_id = $1 AND blob = $2`, t.id, name); err != nil {
			return false, err
		}
	}
	return len(names) == blobsPerStep, nil
}

// inlineBlobs copies the blocks of the bucket into a backup, which then needs none, and never
// removes objects from it.
func (s *Store) inlineBlobs(ctx context.Context, file string) (err error) {
	if s.options.Blobs == nil {
		var used bool
		err := s.own().longQueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM cold_blocks WHERE blob <> '') OR EXISTS (SELECT 1 FROM unused_blobs)`, nil, &used)
		if err != nil || !used {
			return err
		}
	}
	target, err := Open(ctx, file, Options{Now: s.options.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if _, err := target.exec(ctx, `DELETE FROM unused_blobs`); err != nil {
		return err
	}
	blocks, err := collectRead(ctx, target.own(), `SELECT team_id, id, n, bytes, blob FROM cold_blocks WHERE blob <> ''`, nil, func(scan scanner) (coldBlock, error) {
		var b coldBlock
		return b, scan(&b.team, &b.id, &b.n, &b.bytes, &b.blob)
	})
	if err != nil {
		return err
	}
	for _, b := range blocks {
		b.bytes = min(b.bytes, cold.MaxBytes)
		block, err := s.blob(ctx, b)
		if err != nil {
			return fmt.Errorf("copy %s to %s: %w", b.blob, filepath.Base(file), err)
		}
		_, err = target.exec(ctx, `UPDATE cold_blocks SET block = $1, blob = '' WHERE team_id = $2 AND id = $3 AND n = $4`, block, b.team, b.id, b.n)
		if err != nil {
			return err
		}
	}
	return nil
}
