package intake

import (
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// maxShares limits the From domains of a report, and of all reports of a message, which are in
// memory until it is stored. Attackers can use any number of names.
const maxShares = 100_000

// sharing sums the records of an aggregate report by From domain.
type sharing struct {
	shares []dmarcd.Share // in order of appearance
	at     map[string]int
}

func newSharing() *sharing { return &sharing{at: make(map[string]int)} }

// add counts a record. It rejects a report with too many From domains.
func (s *sharing) add(from string, counts dmarcd.Counts) error {
	at, known := s.at[from]
	if !known {
		if at = len(s.shares); at == maxShares {
			return &aggregate.RejectedError{
				Why:    aggregate.RejectedLimit,
				Detail: fmt.Sprintf("the report has more than %d From domains", maxShares),
			}
		}
		s.at[from] = at
		s.shares = append(s.shares, dmarcd.Share{From: from})
	}
	share := &s.shares[at]
	share.Records++
	share.Add(counts)
	return nil
}

// list returns the shares. A report without records has one, so that it can be attributed.
func (s *sharing) list() []dmarcd.Share {
	if len(s.shares) == 0 {
		return []dmarcd.Share{{}}
	}
	return s.shares
}
