package insight

import (
	"cmp"
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// ClassCounts are the messages of each class. Those of services count as yours.
type ClassCounts struct{ Yours, Forwarded, Spoofed, Unknown dmarcd.Counts }

// Add adds other to c.
func (c *ClassCounts) Add(other ClassCounts) {
	c.Yours.Add(other.Yours)
	c.Forwarded.Add(other.Forwarded)
	c.Spoofed.Add(other.Spoofed)
	c.Unknown.Add(other.Unknown)
}

// All returns the messages of all classes.
func (c ClassCounts) All() dmarcd.Counts {
	all := c.Yours
	all.Add(c.Forwarded)
	all.Add(c.Spoofed)
	all.Add(c.Unknown)
	return all
}

// ClassDay is the mail of a day by class.
type ClassDay struct {
	Day dmarcd.Day
	ClassCounts
}

// ClassDays returns the mail of each day with records by the class that its sender has for its domain
// over the whole period, in order. The caller must not change it.
func (m *Mail) ClassDays(ctx context.Context) ([]ClassDay, error) {
	return answered(m, "classes by day", Query{}, func() ([]ClassDay, error) {
		if err := m.recognize(ctx); err != nil {
			return nil, err
		}
		about := m.about
		if len(about) == 0 {
			about = []Domain{{Name: m.domain}}
		}
		a := m.newAssessor(about)
		if err := m.scan(ctx, m.days, nil, a); err != nil {
			return nil, err
		}
		return m.classDays(ctx, a)
	})
}

// classDays scans the mail of the assessed senders once more, to add it up by day and class. Nothing
// else is stored for a sender, so that memory does not depend on their number.
func (m *Mail) classDays(ctx context.Context, a *assessor) ([]ClassDay, error) {
	c := &classCounter{grouping: m.grouping(GroupSender), only: a.only != nil, days: make(map[dmarcd.Day]*classSums)}
	m.inTurn(ctx, func() { c.classes = m.classesOf(a) })
	if err := m.scan(ctx, m.days, nil, c); err != nil {
		return nil, err
	}
	days := make([]ClassDay, 0, len(c.days))
	for day, of := range c.days {
		days = append(days, ClassDay{day, ClassCounts{
			Yours: of[columnYours].counts(), Forwarded: of[columnForwarded].counts(), Spoofed: of[columnSpoofed].counts(), Unknown: of[columnUnknown].counts(),
		}})
	}
	slices.SortFunc(days, func(a, b ClassDay) int { return cmp.Compare(a.Day, b.Day) })
	return days, nil
}

// classesOf returns the column of each sender, by domain; all of them are under 0 if the mail belongs to
// one domain.
func (m *Mail) classesOf(a *assessor) map[dmarcd.DomainID]map[senderIndex]classColumn {
	others, limited := m.whole.senders.byValue[sender{part: partOthers}]
	classes := make(map[dmarcd.DomainID]map[senderIndex]classColumn, len(a.domains))
	for id, d := range a.domains {
		if a.only != nil {
			id = 0
		}
		classes[id] = make(map[senderIndex]classColumn, len(d.profiles))
		for at := range d.profiles {
			of := m.assessed(d, senderIndex(at))                     //nolint:gosec // it was one
			classes[id][senderIndex(at)] = columnOf(of.finalClass()) //nolint:gosec // as above
		}
		if column, ok := classes[id][others]; ok && limited && a.profiles >= maxAllProfiles {
			classes[id][allOthers] = column // mail of senders without a profile is part of theirs
		}
	}
	return classes
}

// allOthers stands for all senders of a domain that have no profile.
const allOthers = senderIndex(unsetNetwork)

// classColumn is the column of a class in ClassCounts.
type classColumn uint8

const (
	columnUnknown classColumn = iota
	columnYours
	columnForwarded
	columnSpoofed
	classColumns
)

func columnOf(class dmarcd.Class) classColumn {
	switch class {
	case dmarcd.ClassYours, dmarcd.ClassService:
		return columnYours
	case dmarcd.ClassForwarder:
		return columnForwarded
	case dmarcd.ClassSpoofing:
		return columnSpoofed
	}
	return columnUnknown
}

type classSums [classColumns]sum

// classCounter gathers mail by day and by the class of its sender.
type classCounter struct {
	*grouping
	classes map[dmarcd.DomainID]map[senderIndex]classColumn
	only    bool // all mail belongs to one domain
	days    map[dmarcd.Day]*classSums
}

func (c *classCounter) add(share *rollup.Share, records []rollup.Record) {
	day := c.days[share.Day]
	if day == nil {
		day = new(classSums)
		c.days[share.Day] = day
	}
	domain := share.Domain
	if c.only {
		domain = 0
	}
	classes := c.classes[domain]
	for i := range records {
		r := &records[i]
		column, known := classes[c.sender(share, r)]
		if !known {
			column = classes[allOthers]
		}
		day[column].add(share, r)
	}
}
