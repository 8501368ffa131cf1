package unpack

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/failure"
)

const (
	// maxMultiparts is the number of nested multiparts in one mail. They do not count as
	// containers for Limits.Nesting: usual mail has three or four.
	maxMultiparts = 16
	// maxFailurePiece is the number of bytes stored of each piece of a failure report.
	maxFailurePiece = 256 << 10
)

// mail is the state of a walk through one mail.
type mail struct {
	scan  *scanner
	parts int // number so far, to name parts without a name
	// report is set if the mail declares itself a feedback report (RFC 5965 §2); failure
	// collects its pieces.
	report  bool
	failure failure.Message
}

// mail walks through a mail. If no part could be a report, it rejects the outermost mail
// once.
func (w *walker) mail(r io.Reader, at location) error {
	m := &mail{scan: newScanner(r, w.budget)}
	h, err := m.scan.header()
	if err != nil {
		return w.cutOff(err, at)
	}
	m.failure.Date = decoded(h["date"])
	outermost := at.mail == nil
	before := w.parts
	inner := at.in("")
	inner.mail = m
	if err := w.entity(h, inner); err != nil {
		return err
	}
	if m.failure.Feedback != nil || m.failure.Text != nil {
		p := inner.part(Failure)
		p.Failure = m.failure
		if err := w.hand(p); err != nil {
			return err
		}
	}
	switch {
	case m.scan.damage != nil:
		// More parts may follow the damage.
		return w.reject(inner, m.scan.damage)
	case w.parts == before && outermost:
		return w.reject(inner, ErrNoReport)
	default:
		return nil
	}
}

// entity walks through what follows a header: a multipart or a body.
func (w *walker) entity(h header, at location) error {
	media, params := h.mediaType()
	if strings.HasPrefix(media, "multipart/") {
		if params["boundary"] != "" {
			return w.multipart(media, params, at)
		}
		media = "text/plain" // RFC 2046 §5.1.1 requires a boundary
	}
	name := h.name()
	if name == "" && at.mail.parts > 0 {
		name = "part-" + strconv.Itoa(at.mail.parts)
	}
	at.path = joinPath(at.path, name)
	at.media = media
	at.inside = true
	return w.body(h, at)
}

// multipart walks through the parts of a multipart.
func (w *walker) multipart(media string, params map[string]string, at location) error {
	m, s := at.mail, at.mail.scan
	if len(s.open) >= maxMultiparts {
		return w.reject(at, &LimitError{Limit: LimitNesting, Max: maxMultiparts})
	}
	if media == "multipart/report" && strings.EqualFold(params["report-type"], "feedback-report") {
		m.report = true
	}
	level := len(s.open)
	s.open = append(s.open, params["boundary"])
	defer func() { s.open = s.open[:level] }()
	for {
		// This skips the preamble, or what the visitor left of a part.
		if err := s.skip(); err != nil {
			return w.cutOff(err, at)
		}
		if s.met != level || s.closing {
			break
		}
		if err := w.budget.member(); err != nil {
			return err
		}
		s.begin()
		m.parts++
		h, err := s.header()
		if err != nil {
			return w.cutOff(err, at)
		}
		if err := w.entity(h, at); err != nil {
			return err
		}
	}
	if s.met == level {
		// Skip the epilogue, up to a boundary of an enclosing multipart.
		s.begin()
		s.open = s.open[:level]
		if err := s.skip(); err != nil {
			return w.cutOff(err, at)
		}
	}
	return nil
}

// body walks through one body of the mail.
func (w *walker) body(h header, at location) error {
	m := at.mail
	encoded := bufio.NewReaderSize(m.scan, sniffBytes)
	content := bufio.NewReaderSize(transferDecoder(h["contenttransferencoding"], encoded), sniffBytes)
	switch {
	case isOriginal(at.media) && (m.report || m.failure.Feedback != nil):
		// This is the mail that a failure report describes. It was not sent to us, so it
		// is not searched for reports.
		return w.readPiece(&m.failure.Original, content, at)
	case at.media == "message/feedback-report":
		return w.feedback(content, at)
	case at.media == "text/plain" && m.failure.Text == nil:
		head, _ := content.Peek(sniffBytes) // the next Read returns an error
		if failure.IsText(head) {
			return w.readPiece(&m.failure.Text, content, at)
		}
	case isOriginal(at.media) && strings.HasPrefix(at.media, "message/"):
		return w.open(formatMail, content, content, at)
	}
	return w.content(content, at)
}

// feedback stores the machine-readable piece of a failure report in the enclosing mail,
// or passes it on if there is none.
func (w *walker) feedback(r io.Reader, at location) error {
	if at.mail != nil {
		if at.mail.failure.Feedback != nil {
			return nil // RFC 5965 §2 allows only one
		}
		return w.readPiece(&at.mail.failure.Feedback, r, at)
	}
	p := at.part(Failure)
	if err := w.readPiece(&p.Failure.Feedback, r, at); err != nil {
		return err
	}
	return w.hand(p)
}

// readPiece stores a piece of a failure report, unless there is one of its kind already. A long one is
// cut at the end of a line: half of an address would not be recognized as one.
func (w *walker) readPiece(piece *[]byte, r io.Reader, at location) error {
	if *piece != nil {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(r, maxFailurePiece))
	if len(content) == maxFailurePiece {
		content = content[:bytes.LastIndexByte(content, '\n')+1]
	}
	*piece = content
	if limit := w.budget.reject(err); limit != nil {
		return w.cutOff(limit, at)
	}
	return nil
}

// cutOff handles a limit that ends the mail early.
func (w *walker) cutOff(err error, at location) error {
	if err := w.budget.alive(); err != nil {
		return err
	}
	return w.reject(at, err)
}

// isOriginal reports whether a media type is a mail or its header. Reporters use
// message/rfc822, text/rfc822-headers (RFC 6522 §4), text/rfc-822-headers and
// message/rfc822-header.
func isOriginal(media string) bool {
	return strings.Contains(strings.ReplaceAll(media, "-", ""), "rfc822") || media == "message/global"
}

// wanted reports whether the body of a part is passed on or opened. Greetings, pictures
// and signatures next to a report must not be rejected as unreadable reports.
func wanted(f format, sure bool, media string) bool {
	if !isBesides(media) {
		return true
	}
	switch f {
	case formatUnknown, formatEmpty, formatMail, formatMbox, formatEmlx:
		return false
	default:
		return sure
	}
}

// isBesides reports whether parts of this media type usually accompany a report. They may
// still be one.
func isBesides(media string) bool {
	switch media {
	case "text/plain", "text/html", "application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature":
		return true
	}
	group, _, _ := strings.Cut(media, "/")
	return group == "image" || group == "message" || isOriginal(media)
}
