package smtpd

import (
	"errors"

	"github.com/emersion/go-smtp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
)

// What only SMTP knows to go wrong.
var (
	errTooManyConnections = errors.New("too many connections")
	errTooManyUnknown     = errors.New("too many unknown recipients")
	errRate               = errors.New("too many messages for the recipient")
	errRelay              = errors.New("not our domain")
	errStopping           = errors.New("the server is shutting down")
	errNested             = errors.New("a message is already in progress")
	errNoGreeting         = errors.New("no greeting")
	errTooLong            = errors.New("a name or an address is too long")
	errQuota              = errors.New("the team is over its quota")
)

// reply returns the reply to an error. The cause of an internal error does not reach the
// client.
func reply(err error) *smtp.SMTPError {
	switch {
	case errors.Is(err, errStopping):
		return answer(421, smtp.EnhancedCode{4, 3, 2}, "The server is shutting down, please try again in a minute.")
	case errors.Is(err, errTooManyConnections):
		return answer(421, smtp.EnhancedCode{4, 7, 0}, "Too many connections, please try again later.")
	case errors.Is(err, errTooManyUnknown):
		return answer(421, smtp.EnhancedCode{4, 7, 0}, "Too many unknown recipients.")
	case errors.Is(err, errRate):
		return answer(450, smtp.EnhancedCode{4, 7, 1}, "The mailbox is receiving too many messages, please try again later.")
	case errors.Is(err, errRelay):
		return answer(550, smtp.EnhancedCode{5, 7, 1}, "This server accepts mail for its own domain only.")
	case errors.Is(err, errNested):
		return answer(503, smtp.EnhancedCode{5, 5, 1}, "A message is already in progress, send RSET first.")
	case errors.Is(err, errNoGreeting):
		return answer(502, smtp.EnhancedCode{5, 5, 1}, "Send EHLO first.")
	case errors.Is(err, errTooLong):
		return answer(501, smtp.EnhancedCode{5, 5, 4}, "The name of the client or the address of the sender is too long.")
	case errors.Is(err, errQuota):
		return answer(452, smtp.EnhancedCode{4, 2, 2}, "The mailbox is over its quota, please try again later.")
	case errors.Is(err, dmarcd.ErrNotFound):
		return answer(550, smtp.EnhancedCode{5, 1, 1}, "There is no such mailbox here.")
	case errors.Is(err, smtp.ErrDataTooLarge), errors.Is(err, dmarcd.ErrLimit):
		return answer(552, smtp.EnhancedCode{5, 3, 4}, "The message is too large, see the SIZE limit in EHLO.")
	case errors.Is(err, smtp.ErrTooLongLine):
		return answer(554, smtp.EnhancedCode{5, 6, 0}, "The message has a line that is too long.")
	case errors.Is(err, spool.ErrFull):
		return answer(452, smtp.EnhancedCode{4, 3, 1}, "There is no space for the message, please try again later.")
	default:
		return answer(451, smtp.EnhancedCode{4, 3, 0}, "The message cannot be accepted now, please try again later.")
	}
}

func answer(code int, enhanced smtp.EnhancedCode, message string) *smtp.SMTPError {
	return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: message}
}
