package web

import (
	"cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// eventDiff returns the difference between the records before and after an event, nil for events
// that are not about a record: their summary is complete.
func eventDiff(e dmarcd.Event) []ui.DiffPart {
	switch e.Kind {
	case dmarcd.RecordAppeared, dmarcd.RecordChanged, dmarcd.RecordRemoved:
		return ui.DiffTerms(e.Before, e.After)
	}
	return nil
}

// eventTones are the colors of events whose level says too little: a resolved problem is good.
var eventTones = map[dmarcd.EventKind]string{
	dmarcd.PolicyStrengthened: "good",
	dmarcd.FindingResolved:    "good",
	dmarcd.RecordAppeared:     "good",
	dmarcd.FindingAppeared:    "warning",
	dmarcd.RecordChanged:      "info",
}

// eventCell shows the name of an event kind.
func eventCell(kind dmarcd.EventKind) ui.Cell {
	return ui.Cell{Kind: ui.CellBadge, Text: phrase.Kind(kind), Tone: cmp.Or(eventTones[kind], levelTones[kind.Level()])}
}

// levelTones are the colors of levels.
var levelTones = map[dmarcd.Level]string{dmarcd.LevelError: "bad", dmarcd.LevelWarning: "warning", dmarcd.LevelInfo: "info"}

// kindsWithout returns all kinds of events except some.
func kindsWithout(excluded func(dmarcd.EventKind) bool) []dmarcd.EventKind {
	var kinds []dmarcd.EventKind
	for _, kind := range dmarcd.EventKinds() {
		if !excluded(kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// policyKinds are changes of policies.
var policyKinds = []dmarcd.EventKind{dmarcd.PolicyWeakened, dmarcd.PolicyStrengthened}
