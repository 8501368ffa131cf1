package insight

import (
	"cmp"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// dkimState is what became of the signatures of a message, the best of them.
type dkimState uint8

const (
	unsigned       dkimState = iota // there is no signature
	signedByOther                   // a signature of another organization passes
	signatureFails                  // a signature of the organization does not verify
	keyFails                        // the same, because its key cannot be used
	signedAligned                   // a signature passes, aligned in relaxed mode
)

// spfState is the result of SPF for MAIL FROM or, without one, HELO.
type spfState uint8

const (
	spfUnrelated    spfState = iota // it is for another organization, and does not pass
	spfOther                        // it passes for another organization
	spfMissing                      // the organization's domain has no record
	spfUnauthorized                 // its record does not list the address
	spfBroken                       // its record has a permanent error
	spfAligned                      // it passes, aligned in relaxed mode
)

// failure is why messages fail. Messages of one sender that fail alike are a group.
type failure struct {
	dkim dkimState
	// signer is the domain of the signature that dkim is about, selector its selector.
	signer, selector string
	spf              spfState
	checked          string // the domain that spf is about
	// from is the From domain.
	from string
}

// evaluation is the meaning of an identity (signatures and SPF results) for a From domain.
type evaluation struct {
	failure
	// strictDKIM and strictSPF are true if it also passes in strict mode.
	strictDKIM, strictSPF bool
	// namesDKIM and namesSPF are true if the report names what passed.
	namesDKIM, namesSPF bool
	// key is the name of the key of an aligned signature that passed, and broken of one that
	// did not.
	key, broken string
	// as is another organization as which the message authenticates.
	as string
}

// passesSPF and passesDKIM report whether a record with the outcome passes aligned, in relaxed mode
// at least: strict alignment says nothing about who sent it.
func (e *evaluation) passesSPF(o dmarcd.Outcome) bool { return o.SPF() || e.spf == spfAligned }

func (e *evaluation) passesDKIM(o dmarcd.Outcome) bool { return o.DKIM() || e.dkim == signedAligned }

// signature returns the name of the key of a signature of the organization, valid or not, or "".
func (e *evaluation) signature() string { return cmp.Or(e.key, e.broken) }

// other returns the organization as which the message authenticates if it is not aligned, or "".
func (e *evaluation) other() string {
	if e.dkim == signedAligned || e.spf == spfAligned {
		return ""
	}
	return e.as
}

// evaluate returns the evaluation of an identity for a From domain of an organization.
func evaluate(identity *rollup.Identity, from, organization string) evaluation {
	var e evaluation
	e.from = from
	for _, s := range identity.Signatures {
		aligned := dmarcd.Covers(organization, s.Domain)
		state := unsigned
		switch {
		case s.Passed() && aligned:
			state = signedAligned
			e.strictDKIM = e.strictDKIM || s.Domain == from
		case s.Passed():
			state = signedByOther
			e.as = cmp.Or(e.as, dmarc.LegacyOrganization(s.Domain))
		case aligned && s.Result == rollup.Permerror:
			state = keyFails
		case aligned && s.Result != rollup.None && s.Result != rollup.Temperror:
			state = signatureFails
		}
		e.namesDKIM = e.namesDKIM || s.Passed()
		if state > e.dkim {
			e.dkim, e.signer, e.selector = state, s.Domain, s.Selector
		}
	}
	if e.dkim == signedByOther {
		e.signer, e.selector = dmarc.LegacyOrganization(e.signer), ""
	}
	switch name := e.selector + "._domainkey." + e.signer; e.dkim {
	case signedAligned:
		e.key = name
	case signatureFails, keyFails:
		e.broken = name
	case unsigned, signedByOther:
	}
	for _, c := range identity.SPF {
		e.namesSPF = e.namesSPF || c.Passed()
		if c.Helo && identity.Envelope != "" {
			continue // RFC 9989 §4.4.2
		}
		if state := spfStateOf(c, organization); state >= e.spf {
			e.spf, e.checked = state, c.Domain
		}
		e.strictSPF = e.strictSPF || c.Passed() && c.Domain == from
	}
	if e.spf == spfOther || e.spf == spfUnrelated {
		e.checked = dmarc.LegacyOrganization(e.checked)
	}
	if e.spf == spfOther {
		e.as = cmp.Or(e.as, e.checked)
	}
	return e
}

func spfStateOf(c rollup.SPFCheck, organization string) spfState {
	aligned := dmarcd.Covers(organization, c.Domain)
	switch {
	case c.Passed() && aligned:
		return spfAligned
	case c.Passed():
		return spfOther
	case !aligned:
		return spfUnrelated
	case c.Result == rollup.Permerror:
		return spfBroken
	case c.Result == rollup.None:
		return spfMissing
	case slices.Contains([]rollup.Result{rollup.Fail, rollup.Softfail, rollup.Neutral}, c.Result):
		return spfUnauthorized
	}
	return spfUnrelated
}

// evaluations caches the evaluations of the identities of a block.
type evaluations struct {
	organization func(from string) string
	block        *rollup.Block
	list         []evaluation
	froms        []string // of list
}

func (e *evaluations) begin(b *rollup.Block) {
	e.block = b
	e.froms = refill(e.froms, len(b.Identities), "\x00")
	if len(e.list) < len(b.Identities) {
		e.list = make([]evaluation, len(b.Identities))
	}
}

func (e *evaluations) of(share *rollup.Share, r *rollup.Record) *evaluation {
	at := &e.list[r.Identity]
	if e.froms[r.Identity] != share.From {
		*at = evaluate(&e.block.Identities[r.Identity], share.From, e.organization(share.From))
		e.froms[r.Identity] = share.From
	}
	return at
}
