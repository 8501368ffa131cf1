package insight

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// Limits of the link window, over all domains. Beyond maxAddresses, an address is added only if its
// mail passes or is reported as forwarded, so that spoofers do not displace legitimate addresses. Keys
// that pass have a limit of their own: any sender can write broken signatures.
const (
	maxAddresses    = MaxListed
	maxDKIMKeys     = MaxListed / 2
	maxOfAddress    = 8 // keys, and other domains
	maxForms        = 4 // addresses of an IPv6 /64
	maxAuthorizedBy = 2000
)

// addressMail is the mail of an address, for one domain, in the link window. Addresses of an
// IPv6 /64 are one.
type addressMail struct {
	// forms are the lowest addresses, as in rollups: one, or up to maxForms of an IPv6 /64.
	forms               []string
	first               dmarcd.Day
	total, spf, relayed int64
	// unaligned is the messages that do not pass.
	unaligned int64
	dkimKeys  []dkimKeyMail
	others    []otherMail

	// Set by finish.
	network networkIndex // without a signer
	link    link
	part    part
	as      string // for partAs
}

// dkimKeyMail is messages with a signature of the domain by a key: those that pass, and those that
// carry a signature that does not verify.
type dkimKeyMail struct {
	key            uint32
	passed, broken int64
	elsewhere      bool
}

// otherMail is messages that authenticate only as another organization.
type otherMail struct {
	organization string
	messages     int64
}

// dkimKeyUse counts the passing messages with a key over all addresses: all of them, those from
// addresses that are linked by SPF, listing or name, and by network.
type dkimKeyUse struct {
	passed, linked int64
	byNetwork      map[networkIndex]int64
	// bySigner counts the messages by known sender, if their signatures identify one.
	bySigner map[networkIndex]int64
	passes   bool
}

// sourceForm returns the form of the source of an address: an IPv6 /64, or the address itself.
func sourceForm(form string) string {
	const ipv6, prefix = 1 + 16, 1 + 8
	if len(form) == ipv6 && form[0] == 0 {
		return form[:prefix]
	}
	return form
}

// linker gathers the mail of each address and key in the link window.
type linker struct {
	*grouping
	// count is the number of addresses, passing and broken are the numbers of keys, in all domains.
	count, passing, broken int
}

func (l *linker) add(share *rollup.Share, records []rollup.Record) {
	d := l.enter(share)
	d.first = min(d.first, share.Day)
	for i := range records {
		r := &records[i]
		e, relayed := l.evaluations.of(share, r), l.block.Identities[r.Identity].Reasons.Relayed()
		sign := e.passesSPF(r.Outcome) || e.passesDKIM(r.Outcome) || relayed
		if of := l.address(r.Address, share.Day, sign); of != nil {
			l.addRecord(of, r, e, relayed)
		}
	}
}

// address returns the mail of an address of the block, nil if there are too many.
func (l *linker) address(at uint32, day dmarcd.Day, sign bool) *addressMail {
	last := &l.addresses[at]
	if last.links == l.current {
		last.mail.first = min(last.mail.first, day)
		return last.mail
	}
	form := l.block.Addresses.At(at)
	of := l.current.addresses[sourceForm(form)]
	if of == nil {
		if l.count >= maxAddresses && (!sign || l.count >= 2*maxAddresses) {
			return nil
		}
		l.count++
		form = strings.Clone(form)
		of = &addressMail{first: day}
		l.current.addresses[sourceForm(form)] = of
	}
	of.addForm(form)
	of.first = min(of.first, day)
	last.links, last.mail = l.current, of
	return of
}

func (l *linker) addRecord(of *addressMail, r *rollup.Record, e *evaluation, relayed bool) {
	addMessages(&of.total, r.Count)
	spf, dkim := e.passesSPF(r.Outcome), e.passesDKIM(r.Outcome)
	if spf {
		addMessages(&of.spf, r.Count)
	}
	if relayed {
		addMessages(&of.relayed, r.Count)
	}
	if name := e.signature(); name != "" || dkim {
		if key := l.dkimKey(of, name, dkim); key != nil && dkim {
			addMessages(&key.passed, r.Count)
			l.addSigner(key, r)
		} else if key != nil {
			addMessages(&key.broken, r.Count)
		}
	}
	if spf || dkim {
		return
	}
	addMessages(&of.unaligned, r.Count)
	if other := e.other(); other != "" {
		of.addOther(other, r.Count)
	}
}

// addSigner also counts passing messages with a key for the known sender that signed them.
func (l *linker) addSigner(key *dkimKeyMail, r *rollup.Record) {
	signer := l.signer(r)
	if signer == noNetwork {
		return
	}
	use := &l.current.dkimKeys[key.key]
	if use.bySigner == nil {
		use.bySigner = make(map[networkIndex]int64)
	}
	use.bySigner[signer] = min(use.bySigner[signer]+r.Count, dmarcd.MaxCount)
}

// dkimKey returns the mail of an address by the DKIM key of a name, nil if there are too many. The name is
// "" if the report does not name the key.
func (l *linker) dkimKey(of *addressMail, name string, passes bool) *dkimKeyMail {
	at, known := l.current.byDKIMKey[name]
	switch {
	case !known && passes && l.passing >= maxDKIMKeys, !known && !passes && l.broken >= maxDKIMKeys:
		return nil
	case !known:
		at = uint32(len(l.current.dkimKeys)) //nolint:gosec // there are few
		l.current.byDKIMKey[strings.Clone(name)] = at
		l.current.dkimKeys = append(l.current.dkimKeys, dkimKeyUse{passes: passes})
		if passes {
			l.passing++
		} else {
			l.broken++
		}
	case passes && !l.current.dkimKeys[at].passes:
		l.current.dkimKeys[at].passes = true
		l.passing, l.broken = l.passing+1, l.broken-1
	}
	free := -1
	for i := range of.dkimKeys {
		if of.dkimKeys[i].key == at {
			return &of.dkimKeys[i]
		}
		if of.dkimKeys[i].passed == 0 {
			free = i
		}
	}
	if len(of.dkimKeys) < maxOfAddress {
		of.dkimKeys = append(of.dkimKeys, dkimKeyMail{key: at})
		return &of.dkimKeys[len(of.dkimKeys)-1]
	}
	if free < 0 || !passes && !l.current.dkimKeys[at].passes {
		return nil
	}
	of.dkimKeys[free] = dkimKeyMail{key: at} // instead of one that never passes here
	return &of.dkimKeys[free]
}

func (m *Mail) newLinker(r *recognition) *linker {
	l := &linker{grouping: m.grouping(GroupSender)}
	l.recognition = r
	return l
}

// addForm adds an address of a source. The lowest maxForms stay, so that the order of records does not
// matter.
func (a *addressMail) addForm(form string) {
	at, known := slices.BinarySearch(a.forms, form)
	if known || at >= maxForms {
		return
	}
	a.forms = slices.Insert(a.forms, at, strings.Clone(form))
	a.forms = a.forms[:min(len(a.forms), maxForms)]
}

// addOther counts messages that authenticate as another organization. If there are too many, it
// replaces the one with the fewest messages.
func (a *addressMail) addOther(organization string, messages int64) {
	least := 0
	for i := range a.others {
		if a.others[i].organization == organization {
			addMessages(&a.others[i].messages, messages)
			return
		}
		if a.others[i].messages < a.others[least].messages {
			least = i
		}
	}
	other := otherMail{strings.Clone(organization), messages}
	if len(a.others) < maxOfAddress {
		a.others = append(a.others, other)
	} else {
		a.others[least] = other
	}
}
