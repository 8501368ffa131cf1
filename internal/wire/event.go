package wire

import "github.com/dmarcd/dmarcd"

// Event is something that happened to a domain.
type Event struct {
	ID     string `json:"id"`
	At     string `json:"at"`
	Domain string `json:"domain"`
	Kind   string `json:"kind"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// NewEvent returns the shape of an event.
func NewEvent(e dmarcd.Event) Event {
	return Event{ID: e.ID.String(), At: Time(e.At), Domain: e.Domain, Kind: string(e.Kind), Before: e.Before, After: e.After}
}
