package intake

import (
	"bytes"

	"github.com/dmarcd/dmarcd/failure"
)

// redaction collects the failure reports of a message without the personal data that
// the operator does not store. They become the original of the delivery, in place of
// what was sent: one mail, or a mailbox (mbox) if there are several reports.
//
// Whatever else the message holds is not part of that original. The other reports in
// it are stored as they were read.
type redaction struct {
	options failure.Options
	content Copy
	// first is the only report so far.
	first   []byte
	reports int
}

// add appends a failure report. Its errors are those of Copy.Write.
func (r *redaction) add(m failure.Message) error {
	if r.options.KeepLocalParts && r.options.KeepBody {
		return nil // nothing is left out: the bytes are stored as they were sent
	}
	mail := failure.Redact(m, r.options).Mail()
	r.reports++
	if r.reports == 1 {
		r.first = mail
		return nil
	}
	if r.first != nil {
		if err := r.append(r.first); err != nil {
			return err
		}
		r.first = nil
	}
	return r.append(mail)
}

// append writes a mail to the mailbox, with the lines quoted that would begin another.
func (r *redaction) append(mail []byte) error {
	entry := []byte("From dmarcd Thu Jan  1 00:00:00 1970\n")
	for line := range bytes.Lines(mail) {
		if bytes.HasPrefix(line, []byte("From ")) {
			entry = append(entry, '>')
		}
		entry = append(entry, line...)
	}
	_, err := r.content.Write(append(entry, '\n'))
	return err
}

// apply returns the message with the redacted reports as its content, or as it is if
// it has no failure report.
func (r *redaction) apply(m Message) (Message, error) {
	if r.reports == 0 {
		return m, nil
	}
	if r.first != nil {
		if _, err := r.content.Write(r.first); err != nil {
			return m, err
		}
		r.first = nil
	}
	m.Content, m.Size = &r.content, r.content.Size()
	return m, nil
}
