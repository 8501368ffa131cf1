package insight

import (
	"net/netip"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// Mail is what the reports of some days say about the mail of one domain or of all
// domains of a team. It is not changed once it is read.
type Mail struct {
	records   Records
	days      dmarcd.Days
	rows      []row
	addresses []*address
	networks  map[string]network // by key
	// first and last are the ends of the days: those asked for or, where an end is
	// open, those of the records.
	first, last dmarcd.Day
}

// row is a record with who sent it.
type row struct {
	dmarcd.Sent
	from    *address
	network string // the key of the sender, or of the network
}

// address is where mail came from.
type address struct {
	text     string
	addr     netip.Addr // the zero value for what is no address
	origin   senders.Origin
	host     string // its name, "" if none is known
	messages int64
	// sender is the key of a known sender, "" where the records decide; system is
	// that of the autonomous system once it is needed.
	sender, system string
}

func newAddress(text string) *address {
	addr, _ := netip.ParseAddr(text) // what is none is shown as it stands
	return &address{text: text, addr: addr.Unmap()}
}

// network is a known sender, or an autonomous system.
type network struct {
	name string
	// kind is what a known sender does, "" for all others.
	kind   senders.Kind
	number uint32 // of a system
}

func (n network) isKnown() bool { return n.kind != "" }

// limitDays fills in the ends of the days that are open.
func (m *Mail) limitDays() {
	for i, r := range m.rows {
		day := r.Share.Day
		if i == 0 {
			m.first, m.last = day, day
		}
		m.first, m.last = min(m.first, day), max(m.last, day)
	}
	if m.days.From != nil {
		m.first = *m.days.From
	}
	if m.days.To != nil {
		m.last = *m.days.To
	}
	if len(m.rows) == 0 && (m.days.From == nil || m.days.To == nil) {
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
	var sum dmarcd.Counts
	for _, r := range m.rows {
		sum.Add(r.Counts())
	}
	return sum
}
