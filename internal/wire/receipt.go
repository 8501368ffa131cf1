package wire

import "github.com/dmarcd/dmarcd"

// Receipts is what became of everything that was sent at once.
type Receipts struct {
	Items []Receipt `json:"items"`
}

// NewReceipts returns the shape of receipts.
func NewReceipts(receipts []dmarcd.Receipt) Receipts {
	shape := Receipts{Items: make([]Receipt, len(receipts))}
	for i, receipt := range receipts {
		shape.Items[i] = newReceipt(receipt)
	}
	return shape
}

// Receipt is what became of one report, or of something that is none. What is not
// known of something that was rejected is null or 0.
type Receipt struct {
	Kind         *string  `json:"kind"`
	Status       string   `json:"status"`
	Reason       *string  `json:"reason"` // null where it was not rejected
	ReportID     *string  `json:"report_id"`
	Domain       *string  `json:"domain"`
	Records      int      `json:"records"`
	Messages     int64    `json:"messages"`
	Quirks       []string `json:"quirks"`
	ID           *string  `json:"id"`
	Organization *string  `json:"organization"`
	// Member is where in what was sent it was found, "" for all of it.
	Member string `json:"member"`
}

func newReceipt(r dmarcd.Receipt) Receipt {
	shape := Receipt{
		Kind: optionalText(r.Kind), Status: string(r.Status), Reason: optionalText(r.Reason), ReportID: optionalText(r.ExternalID),
		Domain: optionalText(r.Domain), Records: r.Records, Messages: r.Messages, Quirks: quirkNames(r.Quirks),
		Organization: optionalText(r.Organization), Member: r.Member,
	}
	if r.ID != 0 {
		shape.ID = optionalText(r.ID.String())
	}
	return shape
}

// quirkNames returns a list that is never null.
func quirkNames(quirks []dmarcd.Quirk) []string {
	names := make([]string, len(quirks))
	for i, quirk := range quirks {
		names[i] = quirk.Name
	}
	return names
}

// optionalText is nil for a text that is empty.
func optionalText[T ~string](text T) *string {
	if text == "" {
		return nil
	}
	s := string(text)
	return &s
}
