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

const tooLarge = "The message is too large, see the SIZE limit in EHLO."

// replies are the replies to errors.
var replies = []struct {
	err      error
	code     int
	enhanced smtp.EnhancedCode
	message  string
}{
	{errStopping, 421, smtp.EnhancedCode{4, 3, 2}, "The server is shutting down, please try again in a minute."},
	{errTooManyConnections, 421, smtp.EnhancedCode{4, 7, 0}, "Too many connections, please try again later."},
	{errTooManyUnknown, 421, smtp.EnhancedCode{4, 7, 0}, "Too many unknown recipients."},
	{errRate, 450, smtp.EnhancedCode{4, 7, 1}, "The mailbox is receiving too many messages, please try again later."},
	{errRelay, 550, smtp.EnhancedCode{5, 7, 1}, "This server accepts mail for its own domain only."},
	{errNested, 503, smtp.EnhancedCode{5, 5, 1}, "A message is already in progress, send RSET first."},
	{errNoGreeting, 502, smtp.EnhancedCode{5, 5, 1}, "Send EHLO first."},
	{errTooLong, 501, smtp.EnhancedCode{5, 5, 4}, "The name of the client or the address of the sender is too long."},
	{errQuota, 452, smtp.EnhancedCode{4, 2, 2}, "The mailbox is over its quota, please try again later."},
	{dmarcd.ErrNotFound, 550, smtp.EnhancedCode{5, 1, 1}, "There is no such mailbox here."},
	{smtp.ErrDataTooLarge, 552, smtp.EnhancedCode{5, 3, 4}, tooLarge},
	{dmarcd.ErrLimit, 552, smtp.EnhancedCode{5, 3, 4}, tooLarge},
	{smtp.ErrTooLongLine, 554, smtp.EnhancedCode{5, 6, 0}, "The message has a line that is too long."},
	{spool.ErrFull, 452, smtp.EnhancedCode{4, 3, 1}, "There is no space for the message, please try again later."},
}

// reply returns the reply to an error. The cause of an internal error does not reach the
// client.
func reply(err error) *smtp.SMTPError {
	for _, r := range replies {
		if errors.Is(err, r.err) {
			return &smtp.SMTPError{Code: r.code, EnhancedCode: r.enhanced, Message: r.message}
		}
	}
	return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "The message cannot be accepted now, please try again later."}
}
