package unpack

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/failure"
)

const (
	// maxMultiparts is how many multiparts may be open inside each other in
	// one mail. They are no containers in the sense of Limits.Nesting: every
	// mail program makes three or four.
	maxMultiparts = 16
	// maxFailurePiece is how much of each piece of a failure report is kept.
	maxFailurePiece = 256 << 10
)

// mail is a mail that is being walked through.
type mail struct {
	about *Mail
	scan  *scanner
	parts int // how many have been met, for the names of those without one
	// report says that the mail declares itself a feedback report (RFC 5965
	// §2), and failure collects it.
	report  bool
	failure failure.Message
}

// mail walks through a mail. If it holds nothing that could be a report, that
// is said once for the outermost mail.
func (w *walker) mail(r io.Reader, at place) error {
	m := &mail{scan: newScanner(r, w.budget)}
	h, err := m.scan.header()
	if err != nil {
		return w.cutOff(err, at)
	}
	m.about = h.about()
	m.failure.Date = m.about.Date
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
		p.MediaType = ""
		if err := w.hand(p); err != nil {
			return err
		}
	}
	switch {
	case m.scan.damage != nil:
		// There may have been more than was found.
		return w.reject(inner, m.scan.damage)
	case w.parts == before && outermost:
		return w.reject(inner, ErrNoReport)
	default:
		return nil
	}
}

// entity walks through what a header stands before: a multipart or a body.
func (w *walker) entity(h header, at place) error {
	media, params := h.mediaType()
	if strings.HasPrefix(media, "multipart/") {
		if params["boundary"] != "" {
			return w.multipart(media, params, at)
		}
		media = "text/plain" // RFC 2046 §5.1.1 demands one
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
func (w *walker) multipart(media string, params map[string]string, at place) error {
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
		// Before the first part this is the preamble, later what a part's
		// visitor has left.
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
		// The epilogue: it lasts until the boundary of a multipart around.
		s.begin()
		s.open = s.open[:level]
		if err := s.skip(); err != nil {
			return w.cutOff(err, at)
		}
	}
	return nil
}

// body walks through one body of the mail.
func (w *walker) body(h header, at place) error {
	m := at.mail
	encoded := bufio.NewReaderSize(m.scan, sniffBytes)
	content := bufio.NewReaderSize(transferDecoder(h["contenttransferencoding"], encoded), sniffBytes)
	switch {
	case isOriginal(at.media) && (m.report || m.failure.Feedback != nil):
		// The mail that a failure report is about. It may itself be, or
		// claim to be, a report: it was not sent to us.
		return w.keep(&m.failure.Original, content, at)
	case at.media == "message/feedback-report":
		return w.feedback(content, at)
	case at.media == "text/plain" && m.failure.Text == nil:
		head, _ := content.Peek(sniffBytes) // an error comes back with the next Read
		if failure.IsText(head) {
			return w.keep(&m.failure.Text, content, at)
		}
	case isOriginal(at.media) && strings.HasPrefix(at.media, "message/"):
		return w.open(formatMail, content, content, at)
	}
	return w.content(content, at)
}

// feedback keeps the machine-readable piece of a failure report for the mail
// around it, or hands it over if there is none.
func (w *walker) feedback(r io.Reader, at place) error {
	if at.mail != nil {
		if at.mail.failure.Feedback != nil {
			return nil // RFC 5965 §2 allows one
		}
		return w.keep(&at.mail.failure.Feedback, r, at)
	}
	p := at.part(Failure)
	if err := w.keep(&p.Failure.Feedback, r, at); err != nil {
		return err
	}
	return w.hand(p)
}

// keep reads a piece of a failure report, the first of its sort.
func (w *walker) keep(piece *[]byte, r io.Reader, at place) error {
	if *piece != nil {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(r, maxFailurePiece))
	*piece = content
	if limit := w.budget.refuses(err); limit != nil {
		return w.cutOff(limit, at)
	}
	return nil
}

// cutOff deals with a limit that ends the mail before its end.
func (w *walker) cutOff(err error, at place) error {
	if err := w.budget.alive(); err != nil {
		return err
	}
	return w.reject(at, err)
}

// isOriginal reports whether a media type is that of a mail or of its header
// alone. It is spelt in many ways: message/rfc822, text/rfc822-headers (RFC
// 6522 §4), text/rfc-822-headers, message/rfc822-header.
func isOriginal(media string) bool {
	return strings.Contains(strings.ReplaceAll(media, "-", ""), "rfc822") || media == "message/global"
}

// wanted reports whether the body of a part should be handed over or opened.
// The greeting, the pictures and the signature around a report are no failures
// to read one.
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

// isBesides reports whether a part of this media type usually stands beside a
// report. What is in it may still be one.
func isBesides(media string) bool {
	switch media {
	case "text/plain", "text/html", "application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature":
		return true
	}
	group, _, _ := strings.Cut(media, "/")
	return group == "image" || group == "message" || isOriginal(media)
}
