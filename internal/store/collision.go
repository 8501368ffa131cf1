package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// txAttempts is how often a transaction is tried that met another one.
const txAttempts = 5

// errMoved says that a row is no longer what it was at the beginning of the
// transaction.
var errMoved = fmt.Errorf("%w: the data changed meanwhile", dmarcd.ErrTemporary)

// txAgain is tx for work that other transactions can get in the way of; it is retried
// then, so f may run more than once.
func (t *Team) txAgain(ctx context.Context, f func(tx) error) error {
	for attempt := 1; ; attempt++ {
		err := t.tx(ctx, f)
		if err == nil || attempt == txAttempts || !t.store.collided(err) {
			return err
		}
	}
}

// collided reports whether the same again may succeed at once. A conflict is an id
// that another process drew too.
func (s *Store) collided(err error) bool {
	return errors.Is(err, errMoved) || errors.Is(err, dmarcd.ErrConflict) || s.dialect.isCollision(err)
}
