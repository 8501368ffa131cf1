package dmarc_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

// zone builds the zone of a case. A text instead of records, such as
// SERVFAIL, is a name that cannot be looked up.
func (c corpusCase) zone(t *testing.T) *dnstest.Zone {
	t.Helper()
	z := dnstest.New("")
	c.ZoneTXT.AddTo(z)
	for name, raw := range c.Zone {
		var sets map[string][]string
		if json.Unmarshal(raw, &sets) != nil {
			z.Fail(name)
		}
		addTexts(z, name, sets["TXT"])
		// That the name has a record is all that matters of other types.
		if len(sets["MX"])+len(sets["A"])+len(sets["AAAA"]) > 0 {
			z.Add(dns.Record{Name: name, Type: dns.MX, Host: "mx.invalid"})
		}
	}
	for _, name := range c.RecordsAt {
		text := "v=DMARC1; p=none"
		if psd, ok := c.PSD[name]; ok {
			text += "; psd=" + psd
		}
		addTexts(z, dmarc.QueryName(name), []string{text})
	}
	return z
}

func addTexts(z *dnstest.Zone, name string, texts []string) {
	for _, text := range texts {
		z.Add(dns.Record{Name: name, Type: dns.TXT, Text: []string{text}})
	}
}

// evaluateRecord takes a record for valid if receivers can act on it.
func evaluateRecord(_ *testing.T, c corpusCase) facts {
	r, ok := dmarc.Parse(c.Record)
	f := facts{"valid": ok && r.Usable()}
	if !r.Usable() {
		return f
	}
	p, _ := r.Policy(dmarc.Itself)
	sp, _ := r.Policy(dmarc.Subdomain)
	np, _ := r.Policy(dmarc.MissingSubdomain)
	var rua []string
	for _, u := range r.RUA {
		rua = append(rua, u.Address)
	}
	testing := "n"
	if r.Testing {
		testing = "y"
	}
	maps.Copy(f, facts{
		"p": p, "sp": sp, "np": np, "adkim": r.ADKIM, "aspf": r.ASPF, "fo": r.FO, "rua": rua, "effective": r.Applied(p),
		"tags.p.value": p, "tags.np.value": np, "tags.psd.value": r.PSD, "tags.t.value": testing,
	})
	return f
}

// evaluateLint counts a record as valid only if it has no problems.
func evaluateLint(t *testing.T, c corpusCase) facts {
	t.Helper()
	f := evaluateRecord(t, c)
	r, _ := dmarc.Parse(c.Record)
	for _, p := range r.Problems {
		switch p.Kind {
		case dmarc.InvalidValue, dmarc.MalformedElement, dmarc.BadURI:
			f["valid"] = false
		}
	}
	return f
}

// evaluateTag evaluates the value of one tag.
func evaluateTag(t *testing.T, c corpusCase) facts {
	t.Helper()
	switch c.Tag {
	case "v":
		c.Record = "v=" + c.Value + "; p=none"
	case "p":
		c.Record = "v=DMARC1; p=" + c.Value
	default:
		c.Record = "v=DMARC1; p=none; " + c.Tag + "=" + c.Value
	}
	return evaluateLint(t, c)
}

func evaluateWalk(t *testing.T, c corpusCase) facts {
	t.Helper()
	d := dmarc.Discover(t.Context(), c.zone(t), c.Domain)
	f := facts{
		"org_domain": d.Organization, "policy_domain": d.RecordDomain, "record_at": d.RecordDomain,
		"queries": d.Queried(), "n_queries": len(d.Steps), "error": len(d.Steps) == 0,
	}
	if q := d.Queried(); len(q) > 1 {
		f["first"], f["second"], f["last"] = q[0], q[1], q[len(q)-1]
	}
	return f
}

func evaluateLegacyLookup(t *testing.T, c corpusCase) facts {
	t.Helper()
	d := dmarc.DiscoverLegacy(t.Context(), c.zone(t), c.Domain)
	status := map[dmarc.Status]string{
		dmarc.StatusOK: "found", dmarc.StatusNone: "none", dmarc.StatusMultiple: "none",
		dmarc.StatusUnusable: "permerror", dmarc.StatusInconclusive: "temperror",
	}
	return facts{"status": status[d.Status], "at": d.RecordDomain, "p": d.Policy}
}

// evaluateAlignment supposes a record at example.com, as RFC 9989 appendix B.1 does.
func evaluateAlignment(t *testing.T, c corpusCase) facts {
	t.Helper()
	z := dnstest.New(`_dmarc.example.com TXT "v=DMARC1; p=none"`)
	align := func(m dmarc.Mode) bool {
		return dmarc.Align(t.Context(), z, c.Author, c.Authenticated, m) == dmarc.Aligned
	}
	return facts{"strict": align(dmarc.Strict), "relaxed": align(dmarc.Relaxed)}
}

func evaluateLegacyAlignment(_ *testing.T, c corpusCase) facts {
	mode := dmarc.Relaxed
	if c.Mode == "strict" {
		mode = dmarc.Strict
	}
	return facts{"aligned": dmarc.LegacyAlign(c.A, c.B, mode)}
}

func evaluateConsent(t *testing.T, c corpusCase) facts {
	t.Helper()
	z := c.zone(t)
	record, _ := dmarc.Parse("v=DMARC1; p=none; rua=mailto:r@" + c.Destination)
	consent := dmarc.Destinations(t.Context(), z, c.PolicyDomain, record)[0].Consent
	return facts{
		"accepts":     consent == dmarc.NotNeeded || consent == dmarc.Authorized,
		"dns_queries": len(z.Asked()),
	}
}

// passed returns the domains that DKIM and SPF passed for. It reports false where
// one of them ended in an error, which is left to the evaluation of mail.
func (c corpusCase) passed() (dkim, spf []string, ok bool) {
	dkim, spf = slices.Clone(c.DKIMPass), slices.Clone(c.SPFPass)
	for _, r := range append(slices.Clone(c.DKIM), c.SPF) {
		if strings.HasSuffix(r.Result, "error") {
			return nil, nil, false
		}
	}
	for _, r := range c.DKIM {
		if r.Result == "pass" {
			dkim = append(dkim, r.Domain)
		}
	}
	if c.SPF.Result == "pass" {
		spf = append(spf, c.SPF.Domain)
	}
	return dkim, spf, true
}

// mail is what a receiver finds out about a message.
type mail struct {
	status          dmarc.Status
	record          *dmarc.Record
	policy, applied dmarc.Policy
	align           func(identifier string, mode dmarc.Mode) bool
}

func evaluateMail(t *testing.T, c corpusCase) facts {
	t.Helper()
	z := c.zone(t)
	d := dmarc.Discover(t.Context(), z, c.HeaderFrom)
	f := c.evaluate(mail{d.Status, d.Record, d.Policy, d.Applied, func(identifier string, mode dmarc.Mode) bool {
		return dmarc.Align(t.Context(), z, c.HeaderFrom, identifier, mode) == dmarc.Aligned
	}})
	f["policy_domain"], f["queries"] = d.RecordDomain, d.Queried()
	return f
}

func evaluateLegacyMail(t *testing.T, c corpusCase) facts {
	t.Helper()
	d := dmarc.DiscoverLegacy(t.Context(), c.zone(t), c.HeaderFrom)
	applied := d.Policy
	if d.Percent == 0 {
		applied = applied.Weaker()
	}
	return c.evaluate(mail{d.Status, d.Record, d.Policy, applied, func(identifier string, mode dmarc.Mode) bool {
		return dmarc.LegacyAlign(c.HeaderFrom, identifier, mode)
	}})
}

// evaluate puts the outcome of a message into the words of the tables.
func (c corpusCase) evaluate(m mail) facts {
	dkim, spf, ok := c.passed()
	if !ok {
		return nil
	}
	if m.status == dmarc.StatusInconclusive {
		return facts{"dmarc": "temperror", "policy": nil, "disposition": nil}
	}
	if m.record == nil || m.policy == dmarc.Unstated {
		return facts{"dmarc": "none", "policy": nil, "reject": false, "aligned_dkim": false, "aligned_spf": false}
	}
	dkimAligned := slices.ContainsFunc(dkim, func(d string) bool { return m.align(d, m.record.ADKIM) })
	spfAligned := slices.ContainsFunc(spf, func(d string) bool { return m.align(d, m.record.ASPF) })
	word := func(pass bool) string {
		if pass {
			return "pass"
		}
		return "fail"
	}
	pass := dkimAligned || spfAligned
	f := facts{
		"dmarc": word(pass), "dkim": word(dkimAligned), "spf": word(spfAligned),
		"aligned_dkim": dkimAligned, "aligned_spf": spfAligned,
		"policy": m.policy, "policy_applied": m.applied, "disposition": m.applied,
		"reject": strconv.FormatBool(!pass && m.applied == dmarc.Reject),
	}
	// Where a table has no word for the result, the disposition tells it.
	if _, reported := c.Expect["dmarc"]; pass && !reported {
		f["disposition"] = "pass"
	}
	return f
}
