package insight

import (
	"cmp"
	"math"
	"slices"

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

// otherKey is the key of all sources that are not listed one by one.
const otherKey = "*"

// plurals are what the sources of a group are called.
var plurals = map[Group]string{
	GroupNetwork:  "networks",
	GroupCountry:  "countries",
	GroupAddress:  "addresses",
	GroupReporter: "reporters",
	GroupSelector: "DKIM selectors",
	GroupFrom:     "From domains",
	GroupEnvelope: "envelope domains",
}

// column tells to which source of a group each record belongs, as a place in the list
// of their keys.
type column struct {
	group Group
	keys  []string
	basis basis
	// places are the places of the sources at those of the basis, unless that is
	// byRecord.
	places []uint32
	// of returns the place of the source of a record of the share at a place.
	of func(share int, r *dmarcd.Sent) uint32
}

// column returns the column of a group.
func (m *Mail) column(group Group) column {
	var keys keyList
	c := column{group: group}
	switch group {
	case GroupCountry:
		c.places = placesOf(&keys, m.addresses, func(a *address) string { return a.origin.Country })
	case GroupAddress:
		for i, text := range m.sent.Addresses { // no two are the same
			keys.list, c.places = append(keys.list, cmp.Or(text, notTold)), append(c.places, uint32(i))
		}
		if m.sent.UnlistedAddresses > 0 {
			other := uint32(len(keys.list)) //nolint:gosec // there are fewer than records
			keys.list = append(keys.list, otherKey)
			for i, merged := range m.sent.MergedAddresses {
				if merged {
					c.places[i] = other
				}
			}
		}
	case GroupReporter:
		c.basis, c.places = byShare, placesOf(&keys, m.sent.Shares, func(s *dmarcd.SentShare) string { return s.Organization })
	case GroupFrom:
		c.basis, c.places = byShare, placesOf(&keys, m.sent.Shares, func(s *dmarcd.SentShare) string { return s.HeaderFrom })
	case GroupEnvelope:
		c.basis, c.places = byIdentities, placesOf(&keys, m.sent.Identities, envelope)
		m.placeMerged(&keys, c.places)
	case GroupSelector:
		c.basis, c.places, c.of = m.selectorPlaces(&keys)
	default:
		c.basis = byRecord
		for i := range m.networks.list {
			keys.list = append(keys.list, m.networks.list[i].key)
		}
		c.of = func(_ int, r *dmarcd.Sent) uint32 { return uint32(m.networkOf(r)) }
	}
	c.keys = keys.list
	switch c.basis {
	case byAddress:
		c.of = func(_ int, r *dmarcd.Sent) uint32 { return c.places[r.Address] }
	case byIdentities:
		c.of = func(_ int, r *dmarcd.Sent) uint32 { return c.places[r.Identities] }
	case byShare:
		c.of = func(share int, _ *dmarcd.Sent) uint32 { return c.places[share] }
	}
	return c
}

// keyList gives keys places. The zero value has none.
type keyList struct {
	list   []string
	places map[string]uint32
}

func (k *keyList) place(key string) uint32 {
	key = cmp.Or(key, notTold)
	at, known := k.places[key]
	if !known {
		if k.places == nil {
			k.places = make(map[string]uint32)
		}
		at = uint32(len(k.list)) //nolint:gosec // there are fewer than records
		k.places[key] = at
		k.list = append(k.list, key)
	}
	return at
}

// placesOf returns the places of the keys of some things, each at the place of its
// thing.
func placesOf[T any](keys *keyList, things []T, key func(*T) string) []uint32 {
	places := make([]uint32, len(things))
	for i := range things {
		places[i] = keys.place(key(&things[i]))
	}
	return places
}

// selectorPlaces returns the places of selectors. Where there are several signatures, it
// depends on the From domain which one counts, and so on the record.
func (m *Mail) selectorPlaces(keys *keyList) (basis, []uint32, func(share int, r *dmarcd.Sent) uint32) {
	const several = math.MaxUint32
	single := make([]uint32, len(m.sent.Identities))
	for i := range m.sent.Identities {
		if single[i] = several; len(m.sent.Identities[i].DKIM) < 2 {
			single[i] = keys.place(selectorName(&m.sent.Identities[i], ""))
		}
	}
	m.placeMerged(keys, single)
	if !slices.Contains(single, several) {
		return byIdentities, single, nil
	}
	var names keyList
	froms := placesOf(&names, m.sent.Shares, func(s *dmarcd.SentShare) string { return s.HeaderFrom })
	signed := func(share int, r *dmarcd.Sent) uint64 { return uint64(froms[share])<<32 | uint64(r.Identities) }
	places := make(map[uint64]uint32)
	for i := range m.sent.Shares {
		for j := range m.sent.Shares[i].Records {
			r := &m.sent.Shares[i].Records[j]
			if single[r.Identities] != several {
				continue
			}
			if _, known := places[signed(i, r)]; !known {
				places[signed(i, r)] = keys.place(selectorName(&m.sent.Identities[r.Identities], m.sent.Shares[i].HeaderFrom))
			}
		}
	}
	return byRecord, nil, func(share int, r *dmarcd.Sent) uint32 {
		if place := single[r.Identities]; place != several {
			return place
		}
		return places[signed(share, r)]
	}
}

// placeMerged gives identities that stand for several the place of otherKey.
func (m *Mail) placeMerged(keys *keyList, places []uint32) {
	for i, merged := range m.sent.MergedIdentities {
		if merged {
			places[i] = keys.place(otherKey)
		}
	}
}

// selectorName returns the name at which the key of the signature is published that
// counts, or the domain alone where the report does not tell the selector.
func selectorName(identities *dmarcd.SentIdentities, from string) string {
	var best *aggregate.DKIMResult
	rank := -1
	for i, result := range identities.DKIM {
		fits := 0
		if result.Result == aggregate.ResultPass {
			fits = 1
			if dmarcd.Covers(result.Domain, from) || dmarcd.Covers(from, result.Domain) {
				fits = 2
			}
		}
		if fits > rank {
			best, rank = &identities.DKIM[i], fits
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

// name returns the name for people of a source, and what else is known of it.
func (m *Mail) name(group Group, place uint32, key string) (name, detail string) {
	switch {
	case key == otherKey:
		return "Other " + plurals[group], ""
	case key == notTold:
		return notToldNames[group], ""
	case group == GroupNetwork:
		n := &m.networks.list[place]
		if !n.isKnown() && n.country != "" {
			return n.name, countryName(n.country)
		}
		return n.name, string(n.kind)
	case group == GroupCountry:
		return countryName(key), key
	case group == GroupAddress:
		a := &m.addresses[place]
		return key, cmp.Or(a.host, a.origin.Network.Name)
	}
	return key, ""
}

// countryName returns the English name of a code of ISO 3166-1, or the code.
func countryName(code string) string {
	region, err := language.ParseRegion(code)
	if err != nil {
		return code
	}
	return cmp.Or(display.English.Regions().Name(region), code)
}
