package app

import (
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd/internal/config"
)

// oldNetworks is the age from which a network database is outdated.
const oldNetworks = 365 * 24 * time.Hour

// diagnoseNetworks reports the databases of networks and countries, and their age.
func diagnoseNetworks(cfg config.Config, now time.Time) []Diagnosis {
	const part = "networks"
	atlas, err := OpenAtlas(cfg)
	if err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Replace or remove networks.mmdb and countries.mmdb in the data folder and next to the program."}}
	}
	if _, err := openCatalogue(cfg); err != nil {
		return []Diagnosis{{part, Sick, err.Error(), "Correct the file in senders.catalogue (DMARCD_SENDERS_CATALOGUE); docs/senders.md describes its format."}}
	}
	databases := atlas.Databases()
	if len(databases) == 0 {
		return []Diagnosis{{
			part, Advised, "There is no network database: all senders that the catalogue does not have are shown as one.",
			"Run `make build`, which builds one, or put an MMDB file networks.mmdb into the data folder.",
		}}
	}
	var found []Diagnosis
	for _, database := range databases {
		what := fmt.Sprintf("%s was built on %s, %d days ago.", database.Path, database.Built.Format(time.DateOnly), int(now.Sub(database.Built).Hours()/24))
		if now.Sub(database.Built) > oldNetworks {
			found = append(found, Diagnosis{part, Advised, what, "Install a newer file."})
			continue
		}
		found = append(found, Diagnosis{part, Healthy, what, ""})
	}
	return found
}
