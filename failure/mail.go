package failure

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Mail returns the message as a mail: a feedback report (RFC 5965) or plain text.
// Splitting it returns the same Message.
func (m Message) Mail() []byte {
	var b bytes.Buffer
	if date := strings.Join(strings.Fields(m.Date), " "); date != "" {
		b.WriteString("Date: " + date + "\n")
	}
	b.WriteString("MIME-Version: 1.0\n")
	if len(m.Feedback) == 0 && len(m.Original) == 0 {
		writePart(&b, "text/plain", m.Text)
		return b.Bytes()
	}
	// No part can contain the boundary, because it is a hash of the parts.
	hash := sha256.Sum256(bytes.Join([][]byte{m.Feedback, m.Text, m.Original}, nil))
	boundary := hex.EncodeToString(hash[:])
	b.WriteString("Content-Type: multipart/report; report-type=feedback-report;\n boundary=\"" + boundary + "\"\n\n")
	for _, part := range []struct {
		media   string
		content []byte
	}{
		{"text/plain", m.Text}, {"message/feedback-report", m.Feedback}, {"message/rfc822", m.Original},
	} {
		if len(part.content) > 0 {
			b.WriteString("--" + boundary + "\n")
			writePart(&b, part.media, part.content)
			b.WriteString("\n")
		}
	}
	b.WriteString("--" + boundary + "--\n")
	return b.Bytes()
}

func writePart(b *bytes.Buffer, media string, content []byte) {
	b.WriteString("Content-Type: " + media + "; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n")
	b.Write(content)
}
