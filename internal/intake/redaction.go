package intake

import (
	"bytes"

	"github.com/dmarcd/dmarcd/failure"
)

// redaction collects the redacted failure reports of a message. They replace the original of
// the delivery: one mail, or an mbox if there are several.
//
// Other content of the message is not part of that original. Other reports in it are stored as
// read.
type redaction struct {
	content Copy
	// first is set while there is only one report.
	first   []byte
	reports int
}

// add appends a failure report. Its errors are those of Copy.Write.
func (r *redaction) add(m failure.Message) error {
	mail := failure.Redact(m).Mail()
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

// append writes a mail to the mbox, with From lines quoted.
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

// apply returns the message with the redacted reports as content, or unchanged if it has none.
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
