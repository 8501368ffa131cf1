package smtpd

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/dmarcd/dmarcd/internal/recovered"
)

// protocolLog receives the library's log: connections that break, which is normal, and
// the panics that it recovers.
type protocolLog struct {
	log      *slog.Logger
	boundary recovered.Boundary
}

// Printf logs a message.
func (l protocolLog) Printf(format string, values ...any) {
	if stack, ok := stackOf(values); ok && strings.HasPrefix(format, "panic") {
		if l.boundary != nil {
			l.boundary(&recovered.Error{Where: "smtp", Value: values[len(values)-2], Stack: stack})
		}
		return
	}
	l.log.Debug("SMTP connection", "detail", fmt.Sprintf(format, values...))
}

// stackOf returns the stack of a panic, which the library logs last, behind the value.
func stackOf(values []any) ([]byte, bool) {
	if len(values) < 2 {
		return nil, false
	}
	stack, ok := values[len(values)-1].([]byte)
	return stack, ok
}

// Println logs a message.
func (l protocolLog) Println(values ...any) {
	l.log.Debug("SMTP connection", "detail", fmt.Sprintln(values...))
}
