package service

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// managersContent returns the content of the message with the report for managers about a month,
// which is attached. Its lists have the limits of the report.
func (s *Service) managersContent(ctx context.Context, team dmarcd.TeamID, e dmarcd.Event) (mail.Content, error) {
	from, to := e.DigestPeriod()
	t := s.asViewer(team)
	summary, err := t.ManagerSummary(ctx, "", from, to)
	if err != nil {
		return mail.Content{}, err
	}
	file, err := t.SummaryPDF(ctx, summary)
	if err != nil {
		return mail.Content{}, err
	}
	page, err := s.digestPage("/app/print", from, to)
	if err != nil {
		return mail.Content{}, err
	}
	month := to.Time().Format("January 2006")
	content := mail.Content{
		Subject: summary.Heading() + ", " + month, Title: summary.Heading() + ", " + month,
		Paragraphs: []string{summary.Conclusion, "The attached PDF has the domains, what was done and what is next."},
		Action:     mail.Link{Text: "Open the report", URL: page},
		File:       &mail.File{Name: summary.FileName(), Type: "application/pdf", Data: file},
	}
	for _, f := range summary.Figures() {
		content.Figures = append(content.Figures, mail.Figure{Value: f.Value, Label: f.Label})
	}
	for _, n := range summary.Next[:min(len(summary.Next), digestActions)] {
		content.Details = append(content.Details, phrase.Detail{Name: n.Title, Value: n.Where() + " (" + n.Who + ")"})
	}
	return content, nil
}
