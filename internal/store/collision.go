package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// txAttempts limits the attempts of retryTx.
const txAttempts = 5

// errMoved means that a row changed since the transaction read it.
var errMoved = fmt.Errorf("%w: the data changed meanwhile", dmarcd.ErrTemporary)

// retryTx runs f in a transaction and retries on deadlock, serialization failure, unique
// conflict or errMoved. f may run more than once.
func (t *Team) retryTx(ctx context.Context, f func(tx) error) error {
	for attempt := 1; ; attempt++ {
		err := t.tx(ctx, f)
		if err == nil || attempt == txAttempts || !t.store.collided(err) {
			return err
		}
	}
}

// collided reports whether a retry may succeed at once. A conflict is a random id that another
// process drew too.
func (s *Store) collided(err error) bool {
	return errors.Is(err, errMoved) || errors.Is(err, dmarcd.ErrConflict) || s.dialect.isCollision(err)
}
