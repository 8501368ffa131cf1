package imap

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/emersion/go-imap/v2"
)

const (
	// minSpan and maxSpan bound how many UIDs one search covers. UIDs may have
	// wide gaps, so a span in which little was found is followed by a wider one;
	// the widest answers with ten megabytes if every UID is taken.
	minSpan, maxSpan = 1 << 12, 1 << 20
	// searchBytes is what such an answer may have.
	searchBytes = 16 << 20
)

// span is a part of the UIDs of a folder, with both ends.
type span struct {
	first, last imap.UID
}

// nextSpan returns the span after a UID, of that width at most and below end.
func nextSpan(after imap.UID, width uint32, end imap.UID) span {
	last := end - 1
	if last-after > imap.UID(width) {
		last = after + imap.UID(width)
	}
	return span{first: after + 1, last: last}
}

// search returns the UIDs that there are in the span, in order.
func (s *session) search(ctx context.Context, in span) ([]imap.UID, error) {
	var data *imap.SearchData
	err := s.within(ctx, commandTimeout, searchBytes, func() (err error) {
		criteria := &imap.SearchCriteria{UID: []imap.UIDSet{{imap.UIDRange{Start: in.first, Stop: in.last}}}}
		data, err = s.client.UIDSearch(criteria, nil).Wait()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("search the folder: %w", readable(err))
	}
	return in.of(data.All)
}

// of returns the UIDs of the answer to a search that are in the span. The answer
// may be written in ranges, and a few bytes of it may stand for billions.
func (in span) of(all imap.NumSet) ([]imap.UID, error) {
	ranges, _ := all.(imap.UIDSet) // nothing found is no set
	var uids []imap.UID
	for _, r := range ranges {
		first, last := max(min(r.Start, r.Stop), in.first), min(max(r.Start, r.Stop), in.last)
		if first > last {
			continue
		}
		if uint64(len(uids))+uint64(last-first) > uint64(in.last-in.first) {
			return nil, errors.New("search the folder: the server found more messages than it was asked for")
		}
		for uid := first; uid < last; uid++ {
			uids = append(uids, uid)
		}
		uids = append(uids, last) // apart: there is no UID after the highest
	}
	slices.Sort(uids)
	return slices.Compact(uids), nil
}
