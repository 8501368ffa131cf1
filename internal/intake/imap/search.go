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
	// maxFound is how many UIDs the answer to one search may hold: a folder with
	// more messages is searched in spans of so many UIDs.
	maxFound = 1 << 16
	// numberBytes is what a UID takes in such an answer.
	numberBytes = len("4294967295 ")
	// lateMessages is how many messages may arrive unnoticed while a folder is
	// searched.
	lateMessages = 1 << 12
)

// errTooManyFound is about an answer that no folder could give: the server would
// have us ask for messages without end.
var errTooManyFound = errors.New("the server returned more messages than requested")

// span is a part of the UIDs of a folder, with both ends.
type span struct {
	first, last imap.UID
}

// nextSpan returns the span of UIDs after one and below end that is searched at once
// in a folder with that many messages.
func nextSpan(after, end imap.UID, messages uint32) span {
	last := end - 1
	if messages > maxFound && last-after > maxFound {
		last = after + maxFound
	}
	return span{first: after + 1, last: last}
}

// search returns the UIDs that there are in the span, in order.
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

// results are the UIDs of a span that a server found. The library would insert each
// into an ordered set, in quadratic time if the server begins with the highest.
type results struct {
	span
	uids []imap.UID
}

// setSearch has the answers to a search collected; nil drops them.
func (g *guard) setSearch(r *results) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.search = r
}

// collect reads the answer to a search.
func (g *guard) collect(arguments []byte, add func(*results, []byte) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.search == nil {
		return nil
	}
	return add(g.search, arguments)
}

// addNumbers reads the numbers of a SEARCH response (RFC 3501 §7.2.5), which may
// end with a list that tells a MODSEQ (RFC 7162 §3.1.5).
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

// addSet reads the set of an ESEARCH response (RFC 9051 §7.3.4).
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

// add adds the UIDs from first to last that are in the span. A few bytes may stand
// for billions.
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
	r.uids = append(r.uids, last) // apart: there is no UID after the highest
	return nil
}
