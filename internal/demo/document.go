package demo

import (
	"bytes"
	"iter"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Document is a report as it was sent.
type Document struct {
	// Kind is "" for what is no report.
	Kind   dmarcd.ReportKind
	Intake dmarcd.Intake
	Domain string
	// Name is that of the file: an XML or JSON document, or a mail.
	Name string
	// SentAt is when the reporter sent it.
	SentAt time.Time
	// Content is the document. It is the receiver's to keep.
	Content []byte
}

// DocumentsAbout returns the reports about the UTC day of a moment of the scenario.
func (s *Scenario) DocumentsAbout(at time.Time) iter.Seq[Document] {
	return func(yield func(Document) bool) {
		for i := range s.domains {
			for _, document := range s.documentsOf(&s.domains[i], s.ago(at)) {
				if !yield(document) {
					return
				}
			}
		}
	}
}

// documentsOf returns the reports about one day of a domain.
func (s *Scenario) documentsOf(d *domain, ago int) []Document {
	dice := s.random(d.name, ago)
	rows := s.rows(d, ago, dice)
	var documents []Document
	for i := range receivers {
		if len(rows[i]) > 0 {
			documents = append(documents, s.aggregate(d, &receivers[i], ago, rows[i]))
		}
	}
	documents = append(documents, s.failures(d, ago, rows, dice)...)
	return append(documents, s.tls(d, ago, dice)...)
}

// document returns a report that write writes. It is sent a few hours after the day
// that it is about.
func (s *Scenario) document(kind dmarcd.ReportKind, d *domain, name string, ago int, write func(w *bytes.Buffer) error) Document {
	const sent = 4 * time.Hour
	var content bytes.Buffer
	if err := write(&content); err != nil {
		panic("demo: a buffer refused a report: " + err.Error()) // it never does
	}
	return Document{
		Kind: kind, Intake: dmarcd.IntakeSMTP, Domain: d.name, Name: name, SentAt: s.dayBefore(ago - 1).Add(sent), Content: content.Bytes(),
	}
}
