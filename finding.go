package dmarcd

import "strings"

// Level tells how much a finding matters.
type Level string

// The levels, from the most serious one.
const (
	// LevelError is something that does harm now: mail is lost, or strangers can
	// use the name, though the owner asked for something else.
	LevelError Level = "error"
	// LevelWarning is something that will do harm, or that falls short of what
	// the domain could have.
	LevelWarning Level = "warning"
	// LevelInfo is something worth knowing or an improvement that can wait.
	LevelInfo Level = "info"
	// LevelGood is something that is as it should be.
	LevelGood Level = "good"
)

// Finding is one thing that a check has to say about a domain.
type Finding struct {
	// ID names the sort of finding, such as spf.too-many-lookups. It is stable.
	ID    string
	Level Level
	// What is one sentence on what is so, with the names and numbers concerned.
	What string
	// Why is one sentence on why that matters.
	Why string
	// Fix is one sentence on how to mend it, "" where there is nothing to mend.
	// It ends in a colon where Record follows.
	Fix string
	// Record is the exact record to publish, in the form of a zone file; "" where
	// there is none.
	Record string
	// RFC names the text that says so, with its section.
	RFC string
	// Points is what the finding costs in the grade.
	Points int
}

// FullFix returns Fix and Record as one text.
func (f Finding) FullFix() string { return strings.TrimSpace(f.Fix + " " + f.Record) }
