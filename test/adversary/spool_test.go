package adversary_test

import (
	"fmt"
	"testing"
)

// TestSilentDNSBehindMails sends mails whose senders have a DNS that does not
// answer, to the attacker's own address and to that of the victim.
func TestSilentDNSBehindMails(t *testing.T) {
	const mails = 20
	onEach(t, func(t *testing.T, a *arena) {
		own, foreign := a.address("mallory", "mallory.test"), a.address("victim", "victim.test")
		for name, to := range map[string]string{"to the attacker": own, "to the victim": foreign} {
			a.watch("mails with a silent DNS "+name, func() {
				for i := range mails {
					sender := fmt.Sprintf("s%d%s", i, silentSuffix)
					a.mail("127.1.0.1", "x@"+sender, to, "DKIM-Signature: v=1; a=rsa-sha256; d="+sender+"; s=s1; h=from; bh=AAAA; b=AAAA\r\n"+
						"From: x@"+sender+"\r\nSubject: hello\r\n\r\nhello\r\n")
				}
				a.reported("with a silent DNS "+name, foreign, 1)
			})
		}
		a.d.Stop()
	})
}
