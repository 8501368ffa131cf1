package insight

import (
	"cmp"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// notTold is the key of mail about which a group has nothing to say.
const notTold = "-"

// notToldNames are the names of such mail.
var notToldNames = map[Group]string{
	GroupNetwork:  "Unknown network",
	GroupCountry:  "Unknown country",
	GroupAddress:  "Unknown address",
	GroupReporter: "Unnamed reporter",
	GroupSelector: "No signature",
	GroupFrom:     "No From domain",
	GroupEnvelope: "No envelope domain",
}

// keys finds the keys of rows in one group. It remembers what takes longer to find
// than to remember.
type keys struct {
	group     Group
	selectors map[signed]string
}

// signed is what the choice of a signature depends on.
type signed struct {
	identities *dmarcd.SentIdentities
	from       string
}

func newKeys(group Group) keys {
	return keys{group: group, selectors: map[signed]string{}}
}

// of returns the key of the source in the group that a row belongs to.
func (k keys) of(r *row) string {
	var key string
	switch k.group {
	case GroupNetwork:
		key = r.network
	case GroupCountry:
		key = r.from.origin.Country
	case GroupAddress:
		key = r.from.text
	case GroupReporter:
		key = r.Share.Organization
	case GroupSelector:
		key = k.selector(signed{r.Identities, r.Share.HeaderFrom})
	case GroupFrom:
		key = r.Share.HeaderFrom
	case GroupEnvelope:
		key = envelope(r.Identities)
	}
	return cmp.Or(key, notTold)
}

func (k keys) selector(s signed) string {
	key, known := k.selectors[s]
	if !known {
		key = selectorName(s)
		k.selectors[s] = key
	}
	return key
}

// selectorName returns the name at which the key of the signature is published that
// counts, or the domain alone where the report does not tell the selector.
func selectorName(s signed) string {
	var best *aggregate.DKIMResult
	rank := -1
	for i, result := range s.identities.DKIM {
		fits := 0
		if result.Result == aggregate.ResultPass {
			fits = 1
			if dmarcd.Covers(result.Domain, s.from) || dmarcd.Covers(s.from, result.Domain) {
				fits = 2
			}
		}
		if fits > rank {
			best, rank = &s.identities.DKIM[i], fits
		}
	}
	switch {
	case best == nil:
		return ""
	case best.Selector == "":
		return best.Domain
	}
	return best.Selector + "._domainkey." + best.Domain // RFC 6376 §3.6.2.1
}

// envelope returns the domain of the envelope. Reports may leave it out, and then tell
// it as the domain that SPF was checked for.
func envelope(identities *dmarcd.SentIdentities) string {
	if identities.EnvelopeFrom != "" {
		return identities.EnvelopeFrom
	}
	for _, result := range identities.SPF {
		if result.Scope != "helo" {
			return result.Domain
		}
	}
	return ""
}

// name returns the name for people of a source.
func (m *Mail) name(group Group, key string) string {
	switch {
	case key == notTold:
		return notToldNames[group]
	case group == GroupNetwork:
		return m.networks[key].name
	case group == GroupCountry:
		return countryName(key)
	}
	return key
}

// countryName returns the English name of a code of ISO 3166-1, or the code.
func countryName(code string) string {
	region, err := language.ParseRegion(code)
	if err != nil {
		return code
	}
	return cmp.Or(display.English.Regions().Name(region), code)
}
