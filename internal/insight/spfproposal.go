package insight

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/proposal"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// Limits of trying out an SPF record: addresses of one domain, addresses of all domains, and time.
const (
	maxTried    = 2000
	maxAllTried = 2 * MaxListed
	maxTrying   = 2 * time.Second
)

// spfUse is mail of a sender from an address, by the domain that SPF was checked for.
type spfUse struct {
	form, checked string
	sender        senderIndex
}

// spfCount is messages that pass aligned SPF, and messages that fail DMARC because, among others,
// the SPF record of the domain does not let them pass.
type spfCount struct{ passed, failed int64 }

// addSPF counts a record for trying out an SPF record.
func (a *assessor) addSPF(of senderIndex, r *rollup.Record, e *evaluation) {
	passes := e.spf == spfAligned
	if !passes && (r.Outcome.Compliant() || e.spf != spfBroken && e.spf != spfUnauthorized && e.spf != spfMissing) {
		return
	}
	use := spfUse{a.block.Addresses.At(r.Address), e.checked, of}
	uses := a.mail.spf[use]
	if uses == nil {
		if a.mail.spfFull = a.mail.spfFull || len(a.mail.spf) >= maxTried || a.tried >= maxAllTried; a.mail.spfFull {
			return
		}
		a.tried++
		uses = new(spfCount)
		use.form, use.checked = strings.Clone(use.form), strings.Clone(use.checked)
		if a.mail.spf == nil {
			a.mail.spf = make(map[spfUse]*spfCount)
		}
		a.mail.spf[use] = uses
	}
	if passes {
		addMessages(&uses.passed, r.Count)
	} else {
		addMessages(&uses.failed, r.Count)
	}
}

// triedMail returns the mail that an SPF record is tried out on: all that passes, and what fails
// of legitimate senders.
func (m *Mail) triedMail(d *domainMail, legitimate map[senderIndex]bool) []proposal.Mail {
	if d.spfFull {
		return nil
	}
	var mail []proposal.Mail
	for use, messages := range d.spf {
		one := proposal.Mail{Addr: rollup.Address(use.form), Domain: use.checked, Host: m.whole.hosts[use.form]}
		if n := &m.whole.networks.list[m.whole.senders.list[use.sender].network]; n.inCatalogue() {
			one.Service = n.name
		}
		if !one.Addr.IsValid() {
			continue
		}
		if messages.passed > 0 {
			one.Messages, one.Passes = messages.passed, true
			mail = append(mail, one)
		}
		if messages.failed > 0 && legitimate[use.sender] {
			one.Messages, one.Passes = messages.failed, false
			mail = append(mail, one)
		}
	}
	slices.SortFunc(mail, func(a, b proposal.Mail) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Messages, b.Messages))
	})
	return mail
}

// proposeSPF proposes an SPF record for the domain, tried out on its mail.
func (d *Domain) proposeSPF(ctx context.Context, mail []proposal.Mail) (proposal.Fix, bool) {
	if d.Facts == nil || !slices.ContainsFunc(mail, func(m proposal.Mail) bool { return !m.Passes }) {
		return proposal.Fix{}, false
	}
	var history []*facts.Facts
	for _, check := range d.Checks {
		if check.ID != d.Check && check.Check.Facts != nil {
			history = append(history, check.Check.Facts)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, maxTrying)
	defer cancel()
	return proposal.SPF(ctx, proposal.Input{Facts: d.Facts, History: history, Mail: mail})
}
