package wire

import "github.com/dmarcd/dmarcd"

// Mailbox is a mailbox in an operator's list.
type Mailbox struct {
	ID        string  `json:"id"`
	Host      string  `json:"host"`
	Port      int     `json:"port"`
	Security  string  `json:"security"`
	User      string  `json:"user"`
	Method    string  `json:"method"`
	Folder    string  `json:"folder"`
	After     string  `json:"after"`
	MoveTo    *string `json:"move_to"` // null unless messages are moved
	LastUID   uint32  `json:"last_uid"`
	CreatedAt string  `json:"created_at"`
	SeenAt    *string `json:"seen_at"`
	Error     *string `json:"error"`
	ErrorAt   *string `json:"error_at"`
	PausedAt  *string `json:"paused_at"` // null while it is read
}

// NewMailbox returns the shape of a mailbox.
func NewMailbox(m dmarcd.Mailbox) Mailbox {
	shape := Mailbox{
		ID: m.ID.String(), Host: m.Host, Port: m.Port, Security: string(m.Security), User: m.Username,
		Method: string(m.Method), Folder: m.Folder, After: string(m.After), LastUID: m.LastUID,
		CreatedAt: Time(m.CreatedAt), SeenAt: optionalTime(m.SeenAt), ErrorAt: optionalTime(m.ErrorAt),
		PausedAt: optionalTime(m.PausedAt),
	}
	if m.After == dmarcd.AfterMove {
		shape.MoveTo = &m.MoveTo
	}
	if m.Error != "" {
		shape.Error = &m.Error
	}
	return shape
}
