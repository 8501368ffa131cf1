package app

import (
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd/internal/config"
)

// oldNetworks is the age from which a database of networks tells many addresses
// wrongly.
const oldNetworks = 365 * 24 * time.Hour

// diagnoseNetworks tells which databases name the networks and countries of
// addresses, and how old they are.
func diagnoseNetworks(cfg config.Config, now time.Time) []Diagnosis {
	const part = "networks"
	atlas, err := OpenAtlas(cfg)
	if err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Let senders.networks and senders.countries (DMARCD_SENDERS_NETWORKS, DMARCD_SENDERS_COUNTRIES) name files in MMDB form, or nothing."}}
	}
	if _, err := OpenCatalogue(cfg, nil); err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Correct the file that senders.catalogue (DMARCD_SENDERS_CATALOGUE) names, as docs/senders.md describes it, or name none."}}
	}
	databases := atlas.Databases()
	if len(databases) == 0 {
		// All else works without.
		return []Diagnosis{{part, Healthy, "There is no database of networks: addresses are shown without their networks and countries.", ""}}
	}
	var found []Diagnosis
	for _, database := range databases {
		what := fmt.Sprintf("%s is of %s, %d days ago.", database.Path, database.Built.Format(time.DateOnly), int(now.Sub(database.Built).Hours()/24))
		if now.Sub(database.Built) > oldNetworks {
			found = append(found, Diagnosis{part, Advised, what, "Networks change hands: install a newer file."})
			continue
		}
		found = append(found, Diagnosis{part, Healthy, what, ""})
	}
	return found
}
