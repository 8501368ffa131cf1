package wire

// Hit is something that a search found.
type Hit struct {
	// Kind is domain, sender, address or report, Key what the API calls it.
	Kind   string  `json:"kind"`
	Key    string  `json:"key"`
	Title  string  `json:"title"`
	Detail *string `json:"detail"`
}

// NewHit returns the shape of a hit.
func NewHit(kind, key, title, detail string) Hit {
	return Hit{Kind: kind, Key: key, Title: title, Detail: optionalText(detail)}
}
