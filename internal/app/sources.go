package app

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// OpenAtlas opens the network and country databases in the data folder or next to the program.
func OpenAtlas(cfg config.Config) (*senders.Atlas, error) {
	folders := []string{cfg.Data}
	if program, err := os.Executable(); err == nil {
		folders = append(folders, filepath.Dir(program))
	}
	return senders.OpenAtlas(senders.FindFiles(folders...))
}

// openCatalogue returns the sender catalogue: the operator's file, then the built-in senders,
// then more.
func openCatalogue(cfg config.Config, more ...senders.Sender) (*senders.Catalogue, error) {
	var own []senders.Sender
	if cfg.Senders.Catalogue != "" {
		var err error
		if own, err = senders.ReadSenders(cfg.Senders.Catalogue); err != nil {
			return nil, err
		}
	}
	return senders.NewCatalogue(slices.Concat(own, senders.Known(), more)), nil
}

// newInsight returns what recognizes senders. The networks and senders of sample data, which
// use addresses that others use in examples, are known in teams with sample data only, and in
// the demo.
func newInsight(cfg config.Config, atlas *senders.Atlas, names insight.Names, budget *memory.Budget, isDemo bool) (*insight.Service, error) {
	catalogue, err := openCatalogue(cfg, demo.Senders()...)
	if err != nil {
		return nil, err
	}
	sample := insight.New(atlas.Preferring(demo.Locate), catalogue, names, budget)
	if isDemo {
		return sample, nil
	}
	if catalogue, err = openCatalogue(cfg); err != nil {
		return nil, err
	}
	plain := insight.New(atlas, catalogue, names, budget)
	plain.SetSample(sample)
	return plain, nil
}
