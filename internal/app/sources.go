package app

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/store"
)

// OpenAtlas opens the databases of networks and countries of a configuration. Those
// that are not configured are looked for in the data folder and beside the program.
func OpenAtlas(cfg config.Config) (*senders.Atlas, error) {
	folders := []string{cfg.Data}
	if program, err := os.Executable(); err == nil {
		folders = append(folders, filepath.Dir(program))
	}
	files := senders.FindFiles(folders...)
	if cfg.Senders.Networks != "" {
		files.Networks = cfg.Senders.Networks
	}
	if cfg.Senders.Countries != "" {
		files.Countries = cfg.Senders.Countries
	}
	return senders.OpenAtlas(files)
}

// OpenCatalogue returns the senders of the operator's file, if the configuration names
// one, and the built-in ones. first come before both.
func OpenCatalogue(cfg config.Config, first []senders.Sender) (*senders.Catalogue, error) {
	var own []senders.Sender
	if cfg.Senders.Catalogue != "" {
		var err error
		if own, err = senders.ReadSenders(cfg.Senders.Catalogue); err != nil {
			return nil, err
		}
	}
	return senders.NewCatalogue(slices.Concat(first, own, senders.Known())), nil
}

// nameKeeper keeps the names of addresses in the database.
type nameKeeper struct{ store *store.Store }

// ReverseNames implements senders.NameKeeper.
func (k nameKeeper) ReverseNames(ctx context.Context, addrs []netip.Addr) ([]senders.ReverseName, error) {
	kept, err := k.store.ReverseNames(ctx, addrs)
	names := make([]senders.ReverseName, len(kept))
	for i, name := range kept {
		names[i] = senders.ReverseName(name)
	}
	return names, err
}

// SaveReverseNames implements senders.NameKeeper.
func (k nameKeeper) SaveReverseNames(ctx context.Context, names []senders.ReverseName) error {
	kept := make([]store.ReverseName, len(names))
	for i, name := range names {
		kept[i] = store.ReverseName(name)
	}
	return k.store.SaveReverseNames(ctx, kept)
}
