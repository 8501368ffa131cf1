package smtpd

import (
	"fmt"
	"log/slog"
	"strings"
)

// protocolLog takes what the library has to say: that connections break, which is
// their way, and panics.
type protocolLog struct{ log *slog.Logger }

// Printf logs a message.
func (l protocolLog) Printf(format string, values ...any) {
	if strings.HasPrefix(format, "panic") {
		l.log.Error("panic in an SMTP session", "detail", fmt.Sprintf(format, values...))
		return
	}
	l.log.Debug("SMTP connection", "detail", fmt.Sprintf(format, values...))
}

// Println logs a message.
func (l protocolLog) Println(values ...any) {
	l.log.Debug("SMTP connection", "detail", fmt.Sprintln(values...))
}
