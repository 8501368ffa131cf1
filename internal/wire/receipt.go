package wire

import "github.com/dmarcd/dmarcd"

// Receipts holds the receipts of one upload.
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

// Receipt is the result of one report or rejected item. Unknown members of a rejected item are
// null or 0.
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
	// Member is the location in the upload, "" for the whole.
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
	return new(string(text))
}
