package main

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// book is an audit log: that of a team, or that of the installation.
type book interface {
	Note(ctx context.Context, entry dmarcd.AuditEntry) error
}

// writeDown notes a change that was made on the command line.
func writeDown(ctx context.Context, to book, action, target, detail string) error {
	return to.Note(ctx, dmarcd.AuditEntry{Actor: "command line", Action: action, Target: target, Detail: detail})
}
