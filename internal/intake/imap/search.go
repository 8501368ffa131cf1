package imap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/emersion/go-imap/v2"
)

const (
	// maxFound limits the UIDs of one search result: a larger folder is searched in spans of
	// that many UIDs.
	maxFound = 1 << 16
	// numberBytes is the maximum length of a UID in a search result.
	numberBytes = len("4294967295 ")
	// lateMessages is how many messages may arrive during a search.
	lateMessages = 1 << 12
)

// errTooManyFound means that the result is impossible: the server would have us fetch without
// end.
var errTooManyFound = errors.New("the server returned more messages than requested")

// span is a range of UIDs, with both ends.
type span struct {
	first, last imap.UID
}

// nextSpan returns the next span of UIDs to search, after one and below end, in a folder with
// that many messages.
func nextSpan(after, end imap.UID, messages uint32) span {
	last := end - 1
	if messages > maxFound && last-after > maxFound {
		last = after + maxFound
	}
	return span{first: after + 1, last: last}
}

// search returns the UIDs in the span, sorted.
func (s *session) search(ctx context.Context, in span) ([]imap.UID, error) {
	found := &results{span: in}
	s.guard.setSearch(found)
	defer s.guard.setSearch(nil)
	err := s.within(ctx, commandTimeout, answerBytes+int64(maxFound*numberBytes), func() error {
		criteria := &imap.SearchCriteria{UID: []imap.UIDSet{{imap.UIDRange{Start: in.first, Stop: in.last}}}}
		_, err := s.client.UIDSearch(criteria, nil).Wait()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("search the folder: %w", readable(err))
	}
	s.guard.setSearch(nil) // nothing is added from here on
	slices.Sort(found.uids)
	return slices.Compact(found.uids), nil
}

// results are the UIDs of a search. The library would insert each into a sorted set, in
// quadratic time if they arrive in descending order.
type results struct {
	span
	uids []imap.UID
}

// setSearch collects search results in r; nil drops them.
func (g *guard) setSearch(r *results) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.search = r
}

// collect reads a search result.
func (g *guard) collect(arguments []byte, add func(*results, []byte) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.search == nil {
		return nil
	}
	return add(g.search, arguments)
}

// addNumbers reads a SEARCH response (RFC 3501 §7.2.5), which may end with a MODSEQ list (RFC
// 7162 §3.1.5).
func addNumbers(r *results, arguments []byte) error {
	numbers, _, _ := bytes.Cut(arguments, []byte("("))
	for number := range bytes.FieldsSeq(numbers) {
		uid, err := strconv.ParseUint(string(number), 10, 32)
		if err != nil {
			return errMalformed
		}
		if err := r.add(imap.UID(uid), imap.UID(uid)); err != nil {
			return err
		}
	}
	return nil
}

// addSet reads an ESEARCH response (RFC 9051 §7.3.4).
func addSet(r *results, arguments []byte) error {
	isSet := false
	for word := range bytes.FieldsSeq(arguments) {
		if !isSet {
			isSet = bytes.EqualFold(word, []byte("ALL"))
			continue
		}
		for part := range bytes.SplitSeq(word, []byte(",")) {
			from, to, ranged := bytes.Cut(part, []byte(":"))
			if !ranged {
				to = from
			}
			first, err1 := strconv.ParseUint(string(from), 10, 32)
			last, err2 := strconv.ParseUint(string(to), 10, 32)
			if err1 != nil || err2 != nil {
				return errMalformed
			}
			if err := r.add(imap.UID(min(first, last)), imap.UID(max(first, last))); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// add adds the UIDs from first to last that are in the span. A short range may stand for
// billions.
func (r *results) add(first, last imap.UID) error {
	first, last = max(first, r.first), min(last, r.last)
	if first > last {
		return nil
	}
	if uint64(len(r.uids))+uint64(last-first) >= maxFound+lateMessages {
		return errTooManyFound
	}
	for uid := first; uid < last; uid++ {
		r.uids = append(r.uids, uid)
	}
	r.uids = append(r.uids, last) // separate, because the highest UID has no successor
	return nil
}
