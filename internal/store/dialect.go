package store

// dialect is what the engines disagree on. A query that needs more than this
// wants another design.
type dialect struct {
	name string
	// lockRow ends a SELECT that is followed by an UPDATE of the same rows.
	lockRow string
	// skipLocked ends a SELECT that claims rows, passing over those that
	// another claim holds.
	skipLocked string
	// lockMigration begins a migration, so that replicas which start together
	// take turns; "" where one writer is the rule anyway.
	lockMigration string
	// uninterruptible has single reads run to their end even if the caller
	// leaves. They take microseconds, while the ability to interrupt one
	// costs the SQLite driver a goroutine for each.
	uninterruptible bool
	isUnique        func(error) bool
	isTemporary     func(error) bool
}
