package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Limits of the attempts of retryTx: in a sharded database deadlocks are found late, and
// often, so that there are more attempts, after pauses of random length.
const (
	txAttempts       = 5
	deadlockAttempts = 15
	maxDeadlockPause = 100 * time.Millisecond
)

// errMoved means that a row changed since the transaction read it.
var errMoved = fmt.Errorf("%w: the data changed meanwhile", dmarcd.ErrTemporary)

// retryTx runs f in a transaction and retries on deadlock, serialization failure, unique
// conflict or errMoved. f may run more than once.
func (t *Team) retryTx(ctx context.Context, f func(tx) error) error {
	for attempt := 1; ; attempt++ {
		err := t.tx(ctx, f)
		deadlock := t.store.dialect.isCollision(err)
		if err == nil || !t.store.collided(err) || attempt >= deadlockAttempts || attempt >= txAttempts && !deadlock {
			return err
		}
		if !deadlock {
			continue
		}
		pause := time.NewTimer(rand.N(min(time.Millisecond<<attempt, maxDeadlockPause))) //nolint:gosec // no secret
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}

// collided reports whether a retry may succeed at once. A conflict is a random id that another
// process drew too.
func (s *Store) collided(err error) bool {
	return errors.Is(err, errMoved) || errors.Is(err, dmarcd.ErrConflict) || s.dialect.isCollision(err)
}
