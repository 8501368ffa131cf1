package insight

import (
	"net/netip"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// Mail is what the reports of some days say about the mail of one domain or of all
// domains of a team. It remembers what it added up, and is not safe for concurrent use.
type Mail struct {
	records Records
	sent    *dmarcd.SentMail
	// addresses, homes and signers stand at the places of the addresses and
	// identities: where mail came from, and the known sender that signed it, if one
	// did.
	addresses []address
	homes     []home
	signers   []networkPlace
	networks  networks
	// first and last are the ends of the days: those asked for or, where an end is
	// open, those of the records.
	first, last dmarcd.Day
	total       int // records
	// whole is all mail, chosen the mail of the source that was asked for last.
	whole, chosen *selection
	release       func()
}

// Close gives the memory back that was taken for the mail, which must not be used any
// more. Closing it again has no effect.
func (m *Mail) Close() { m.release() }

// address is where mail came from.
type address struct {
	addr     netip.Addr // the zero value for what is no address
	origin   senders.Origin
	host     string // its name, "" if none is known
	messages int64
	merged   bool // it stands for several; see dmarcd.SentMail
}

// home is the known sender that an address belongs to, if it does, and else its
// autonomous system. It is small: every record leads to one.
type home struct{ sender, system networkPlace }

func newMail(records Records, sent *dmarcd.SentMail, days dmarcd.Days) *Mail {
	m := &Mail{
		records: records, sent: sent, networks: newNetworks(),
		addresses: make([]address, len(sent.Addresses)), homes: make([]home, len(sent.Addresses)), signers: make([]networkPlace, len(sent.Identities)),
	}
	m.whole = &selection{mail: m}
	for i := range sent.Shares {
		m.total += len(sent.Shares[i].Records)
	}
	messages := gather(m, len(sent.Addresses), func(messages []int64, _ int, records []dmarcd.Sent) {
		for i := range records {
			addMessages(&messages[records[i].Address], &records[i].Count)
		}
	}, addMessages)
	for i, text := range sent.Addresses {
		addr, _ := netip.ParseAddr(text) // what is none is shown as it stands
		m.addresses[i].addr, m.addresses[i].messages = addr.Unmap(), messages[i]
		m.addresses[i].merged = sent.MergedAddresses != nil && sent.MergedAddresses[i]
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
