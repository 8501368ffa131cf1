package store

import (
	"context"
	"hash/maphash"

	"github.com/dmarcd/dmarcd"
)

// The sizes of the tables that count addresses and identities, in slots of 16 bytes: 32
// and 16 MiB.
const (
	addressSlots    = 1 << 21
	identitiesSlots = 1 << 20
)

// sentTally counts the messages of each address and of all details, in bounded memory.
type sentTally struct {
	seed                  maphash.Seed
	addresses, identities *heavyKeys
}

func newSentTally(seed maphash.Seed, keys int) *sentTally {
	return &sentTally{seed: seed, addresses: newHeavyKeys(keys, addressSlots), identities: newHeavyKeys(keys, identitiesSlots)}
}

// add counts the messages of a record. The address is in the form of sheets.
func (t *sentTally) add(address, details []byte, messages int64) {
	t.addresses.add(maphash.Bytes(t.seed, address), messages)
	t.identities.add(maphash.Bytes(t.seed, details), messages)
}

// scan counts the records that read gives to a reader, as often as is needed.
func (t *sentTally) scan(limits dmarcd.SentLimits, read func(*mailReader) error) error {
	for {
		addresses, identities := t.addresses.begin(), t.identities.begin()
		if !addresses && !identities {
			return nil
		}
		reader := newMailReader(limits)
		reader.tally = t
		if err := read(reader); err != nil {
			return err
		}
		if addresses {
			t.addresses.end()
		}
		if identities {
			t.identities.end()
		}
	}
}

// listedKeys are the addresses and identities that are listed one by one, by their hashes.
type listedKeys struct {
	seed                  maphash.Seed
	addresses, identities map[uint64]struct{}
}

func (t *sentTally) listed() *listedKeys {
	return &listedKeys{t.seed, t.addresses.hashes(), t.identities.hashes()}
}

func (l *listedKeys) hasAddress(form []byte) bool {
	return has(l.addresses, maphash.Bytes(l.seed, form))
}

func (l *listedKeys) hasIdentities(details []byte) bool {
	return has(l.identities, maphash.Bytes(l.seed, details))
}

func has(hashes map[uint64]struct{}, hash uint64) bool {
	_, found := hashes[max(hash, 1)]
	return found
}

// readMerged reads records with more keys than are listed: it counts the messages of all
// keys first, and then merges all but the heaviest.
func (t *Team) readMerged(ctx context.Context, limits dmarcd.SentLimits, read func(context.Context, *mailReader) error) (*mailReader, error) {
	tally := newSentTally(t.store.seed, limits.Keys)
	if err := tally.scan(limits, func(reader *mailReader) error { return read(ctx, reader) }); err != nil {
		return nil, err
	}
	mail := newMailReader(limits)
	mail.listed = tally.listed()
	mail.UnlistedAddresses = tally.addresses.distinct - len(mail.listed.addresses)
	mail.UnlistedIdentities = tally.identities.distinct - len(mail.listed.identities)
	return mail, read(ctx, mail)
}
