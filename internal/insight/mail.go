package insight

import (
	"net/netip"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// Mail is what the reports of some days say about the mail of one domain or of all
// domains of a team. It is not changed once it is read.
type Mail struct {
	records Records
	sent    *dmarcd.SentMail
	// addresses and signers stand at the places of the addresses and identities:
	// where mail came from, and the known sender that signed it, if one did.
	addresses []address
	signers   []networkPlace
	networks  networks
	// first and last are the ends of the days: those asked for or, where an end is
	// open, those of the records.
	first, last dmarcd.Day
}

// address is where mail came from.
type address struct {
	addr     netip.Addr // the zero value for what is no address
	origin   senders.Origin
	host     string // its name, "" if none is known
	messages int64
	// sender is the known sender that it belongs to, if it does; system is its
	// autonomous system.
	sender, system networkPlace
}

func newMail(records Records, sent *dmarcd.SentMail, days dmarcd.Days) *Mail {
	m := &Mail{
		records: records, sent: sent, networks: newNetworks(),
		addresses: make([]address, len(sent.Addresses)), signers: make([]networkPlace, len(sent.Identities)),
	}
	parts := m.all()
	messages := gather(len(parts), recordsOf(parts), len(sent.Addresses), func(messages []int64, from, to int) {
		for _, p := range parts[from:to] {
			for i := range p.records {
				addMessages(&messages[p.records[i].Address], &p.records[i].Count)
			}
		}
	}, addMessages)
	for i, text := range sent.Addresses {
		addr, _ := netip.ParseAddr(text) // what is none is shown as it stands
		m.addresses[i].addr, m.addresses[i].messages = addr.Unmap(), messages[i]
	}
	m.limitDays(days)
	return m
}

// limitDays finds the ends of the days.
func (m *Mail) limitDays(days dmarcd.Days) {
	for i := range m.sent.Shares {
		day := m.sent.Shares[i].Day
		if i == 0 {
			m.first, m.last = day, day
		}
		m.first, m.last = min(m.first, day), max(m.last, day)
	}
	if days.From != nil {
		m.first = *days.From
	}
	if days.To != nil {
		m.last = *days.To
	}
	if len(m.sent.Shares) == 0 && (days.From == nil || days.To == nil) {
		m.last = m.first - 1 // no day
	}
}

// maxDays bounds a series with a value for each day: three years. A report may say
// that it is from any year.
const maxDays = 3 * 366

// span returns the number of days of a series, 0 where there would be too many.
func (m *Mail) span() int {
	n := int(m.last) - int(m.first) + 1
	if n > maxDays {
		return 0
	}
	return max(n, 0)
}

// Counts returns the sum of all records.
func (m *Mail) Counts() dmarcd.Counts {
	var all sum
	for _, p := range m.all() {
		for _, r := range p.records {
			all.add(&r, 0)
		}
	}
	return all.counts()
}

// part is some records of the share at a place.
type part struct {
	share   int
	records []dmarcd.Sent
}

func recordsOf(parts []part) int {
	n := 0
	for _, p := range parts {
		n += len(p.records)
	}
	return n
}

// all returns all records.
func (m *Mail) all() []part {
	parts := make([]part, len(m.sent.Shares))
	for i := range parts {
		parts[i] = part{i, m.sent.Shares[i].Records}
	}
	return parts
}

// of returns the records of the source that the query names, or all where it names
// none.
func (m *Mail) of(q Query) []part {
	if q.Key == "" {
		return m.all()
	}
	column := m.column(q.Group)
	wanted, ok := column.find(q.Key)
	if !ok {
		return nil
	}
	var parts []part
	for i := range m.sent.Shares {
		var some []dmarcd.Sent
		records := m.sent.Shares[i].Records
		for j := range records {
			if column.of(i, &records[j]) == wanted {
				some = append(some, records[j])
			}
		}
		if len(some) > 0 {
			parts = append(parts, part{i, some})
		}
	}
	return parts
}
