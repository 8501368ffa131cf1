package zone

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
)

// A snapshot is a zone file (RFC 1035 §5), which any DNS server can read: the SOA record first, the
// records of a name one after the other, and at the end a comment with the SHA-256 checksum of all
// lines before it.
const checksumPrefix = "; sha256 "

const (
	checksumBytes = len(checksumPrefix) + 2*sha256.Size + 1
	// maxSnapshot limits the file: ten times the records of 100,000 domains.
	maxSnapshot = 1 << 30
)

// errSnapshot is of a file that is damaged, or of another zone.
var errSnapshot = errors.New("it is not a whole snapshot of this zone")

// Save writes a snapshot to a file. After an error, or a crash, the file is what it was before.
func (z *Zone) Save(path string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".zone-") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // the temporary name, which is gone after the renaming
	err = z.write(file)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// write writes a snapshot. It does not hold up answers.
func (z *Zone) write(file io.Writer) error {
	serial, records := z.all()
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(file, sum), 1<<16)
	size := checksumBytes
	for _, rr := range slices.Concat([]mdns.RR{z.soa(serial)}, records) {
		n, err := fmt.Fprintln(w, rr)
		if size += n; size > maxSnapshot {
			return fmt.Errorf("the zone takes more than %d bytes", maxSnapshot)
		}
		if err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(file, "%s%x\n", checksumPrefix, sum.Sum(nil))
	return err
}

// Restore serves what Save wrote, in a zone that has only its name servers. It reads the file
// twice, so that nothing of a damaged one is served. A file that is not there is os.ErrNotExist.
func (z *Zone) Restore(path string) error {
	file, err := os.Open(path) //nolint:gosec // in the data folder
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // read-only
	info, err := file.Stat()
	if err != nil {
		return err
	}
	body := info.Size() - int64(checksumBytes)
	if body <= 0 || info.Size() > maxSnapshot || !info.Mode().IsRegular() {
		return errSnapshot
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, body)); err != nil {
		return err
	}
	checksum := make([]byte, checksumBytes)
	if _, err := file.ReadAt(checksum, body); err != nil {
		return err
	}
	if !bytes.Equal(checksum, fmt.Appendf(nil, "%s%x\n", checksumPrefix, sum.Sum(nil))) {
		return errSnapshot
	}
	return z.restore(io.NewSectionReader(file, 0, body))
}

// restore loads a zone file whose checksum is right. Records of the name servers are in the
// configuration.
func (z *Zone) restore(file io.Reader) error {
	parser := mdns.NewZoneParser(bufio.NewReaderSize(file, 1<<16), "", "")
	first, _ := parser.Next()
	soa, ok := first.(*mdns.SOA)
	if !ok || mdns.CanonicalName(soa.Hdr.Name) != z.apex {
		return errSnapshot
	}
	var pending []Change
	load := func() error {
		err := z.Load(pending)
		pending = pending[:0]
		return err
	}
	for rr, ok := parser.Next(); ok; rr, ok = parser.Next() {
		owner := mdns.CanonicalName(rr.Header().Name)
		if owner == z.apex || z.isNameserver(owner) {
			continue
		}
		record, err := recordOf(rr)
		if err != nil {
			return err
		}
		last := len(pending) - 1
		if last >= 0 && pending[last].Name == owner {
			pending[last].Records = append(pending[last].Records, record)
			continue
		}
		if len(pending) == maxPending {
			if err := load(); err != nil {
				return err
			}
		}
		pending = append(pending, Change{Name: owner, Records: []Record{record}})
	}
	if err := errors.Join(parser.Err(), load()); err != nil {
		return err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.serial = soa.Serial
	return nil
}

// maxPending is the number of names of a snapshot that are loaded together.
const maxPending = 1000

// recordOf is the inverse of parseRecord.
func recordOf(rr mdns.RR) (Record, error) {
	switch rr := rr.(type) {
	case *mdns.TXT:
		return Record{dns.TXT, unescape(strings.Join(rr.Txt, ""))}, nil
	case *mdns.A:
		return Record{dns.A, rr.A.String()}, nil
	case *mdns.AAAA:
		return Record{dns.AAAA, rr.AAAA.String()}, nil
	case *mdns.CNAME:
		return Record{dns.CNAME, strings.TrimSuffix(rr.Target, ".")}, nil
	case *mdns.CAA:
		return Record{CAA, strings.TrimPrefix(rr.String(), rr.Hdr.String())}, nil
	}
	return Record{}, fmt.Errorf("records of type %d are not served", rr.Header().Rrtype)
}

// unescape returns the octets of a text of the library, where \DDD is one and \ makes the next
// one literal.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var octets strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			octets.WriteByte(text[i])
			continue
		}
		i++
		if i+3 <= len(text) {
			if value, err := strconv.ParseUint(text[i:i+3], 10, 8); err == nil {
				octets.WriteByte(byte(value))
				i += 2
				continue
			}
		}
		octets.WriteByte(text[i])
	}
	return octets.String()
}

// Names returns the names below the zone with their records, without those of the name servers, in
// no order. Changes wait meanwhile.
func (z *Zone) Names() iter.Seq2[string, []Record] {
	return func(yield func(string, []Record) bool) {
		z.mu.RLock()
		defer z.mu.RUnlock()
		servers := z.servers()
		for owner, n := range z.names {
			if len(n.records) == 0 || owner == z.apex || servers[owner] {
				continue
			}
			records := make([]Record, 0, len(n.records))
			for _, rr := range n.records {
				if record, err := recordOf(rr); err == nil { // it was parsed
					records = append(records, record)
				}
			}
			if !yield(strings.TrimSuffix(owner, "."), records) {
				return
			}
		}
	}
}

// servers returns the names of the name servers. The caller holds z.mu.
func (z *Zone) servers() map[string]bool {
	names := make(map[string]bool)
	for _, rr := range z.names[z.apex].records {
		if ns, ok := rr.(*mdns.NS); ok {
			names[ns.Ns] = true
		}
	}
	return names
}

// Has reports whether a name has records.
func (z *Zone) Has(name string) bool {
	z.mu.RLock()
	defer z.mu.RUnlock()
	n := z.names[mdns.CanonicalName(name)]
	return n != nil && len(n.records) > 0
}

// Size returns the number of names below the zone that have records, with those of the name servers.
func (z *Zone) Size() int {
	z.mu.RLock()
	defer z.mu.RUnlock()
	return z.names[z.apex].below
}

// Same reports whether another zone, which is not used elsewhere, has the same records.
func (z *Zone) Same(other *Zone) bool {
	z.mu.RLock()
	defer z.mu.RUnlock()
	for owner, n := range z.names {
		o := other.names[owner]
		if o == nil || !slices.EqualFunc(n.records, o.records, mdns.IsDuplicate) {
			return false
		}
	}
	return len(z.names) == len(other.names)
}

// Become serves the records of another zone, which is not used elsewhere and has the same name servers,
// under a serial. All of them become visible at once. Incremental transfers begin again at that serial.
func (z *Zone) Become(other *Zone, serial uint32) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.names, z.serial = other.names, serial
	z.history, z.remembered = nil, 0
}
