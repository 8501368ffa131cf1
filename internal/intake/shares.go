package intake

import (
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// maxShares is the most From domains that a report may have. They are all held in
// memory, and an attacker can send mail under any number of names.
const maxShares = 100_000

// sharing sums the records of an aggregate report up by their From domains.
type sharing struct {
	shares []dmarcd.Share // in the order in which the domains are met
	at     map[string]int
}

func newSharing() *sharing { return &sharing{at: make(map[string]int)} }

// add counts a record. It refuses a report with too many From domains.
func (s *sharing) add(r aggregate.Record) error {
	from := fromOf(r)
	at, known := s.at[from]
	if !known {
		if at = len(s.shares); at == maxShares {
			return &aggregate.RefusedError{
				Why:    aggregate.RefusedLimit,
				Detail: fmt.Sprintf("the report has more than %d From domains", maxShares),
			}
		}
		s.at[from] = at
		s.shares = append(s.shares, dmarcd.Share{From: from})
	}
	share := &s.shares[at]
	share.Records++
	share.Add(dmarcd.CountsOf(r))
	return nil
}

// list returns the shares. A report without records has one, so that it is somebody's.
func (s *sharing) list() []dmarcd.Share {
	if len(s.shares) == 0 {
		return []dmarcd.Share{{}}
	}
	return s.shares
}

// fromOf returns the From domain of a record in a length that can be kept.
func fromOf(r aggregate.Record) string { return shorten(r.HeaderFrom) }
