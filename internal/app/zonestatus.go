package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/zone"
)

// ZoneStatus is the zone of managed records, its secondaries, and the snapshot in the data folder of
// this machine.
type ZoneStatus struct {
	service.ZoneState

	Nameservers []string
	Secondaries []SecondaryStatus
	Snapshot    SnapshotStatus
}

// SecondaryStatus is a server that transfers the zone. Problem says why its serial is not known.
type SecondaryStatus struct {
	Address string
	Serial  uint32
	Problem string
}

// SnapshotStatus is a file that serves a start without a database. Problem says why it cannot.
type SnapshotStatus struct {
	File    string
	Serial  uint32
	Names   int
	SavedAt time.Time
	Problem string
}

// ZoneStatus returns the status of the zone. It asks the secondaries for their serials.
func (i *Installation) ZoneStatus(ctx context.Context, system *service.System) (z ZoneStatus, err error) {
	if i.Config.Zone == "" {
		return z, errors.New("there is no zone: set DMARCD_ZONE as for the daemon")
	}
	if z.ZoneState, err = system.ZoneState(ctx); errors.Is(err, dmarcd.ErrNotFound) {
		return z, errors.New("the database has no zone yet: start the daemon with DMARCD_ZONE")
	}
	if err != nil {
		return z, err
	}
	z.Nameservers = i.Config.ZoneNameservers
	z.Snapshot = readSnapshot(i.Config)
	z.Secondaries, err = askSecondaries(ctx, i.Config)
	return z, err
}

// readSnapshot checks the snapshot of the zone.
func readSnapshot(cfg config.Config) SnapshotStatus {
	s := SnapshotStatus{File: snapshotPath(cfg)}
	info, err := os.Stat(s.File)
	if errors.Is(err, fs.ErrNotExist) {
		s.Problem = "there is none"
		return s
	}
	z, newErr := zone.New(cfg.Zone, 0, zoneServers(cfg))
	if err = errors.Join(err, newErr); err == nil {
		err = z.Restore(s.File)
	}
	if err != nil {
		s.Problem = err.Error()
		return s
	}
	s.Serial, s.Names, s.SavedAt = z.Serial(), z.Size(), info.ModTime().UTC()
	return s
}

// askSecondaries asks all secondaries at once.
func askSecondaries(ctx context.Context, cfg config.Config) ([]SecondaryStatus, error) {
	secondaries, err := zoneSecondaries(cfg)
	if err != nil {
		return nil, err
	}
	found := make([]SecondaryStatus, len(secondaries))
	var all sync.WaitGroup
	for i, secondary := range secondaries {
		all.Go(func() {
			found[i].Address = secondary.Address
			serial, err := secondary.Serial(ctx, cfg.Zone)
			if err != nil {
				found[i].Problem = err.Error()
			}
			found[i].Serial = serial
		})
	}
	all.Wait()
	return found, nil
}

// diagnoseZoneState reports names that a restored database does not have, secondaries that are behind,
// and a snapshot that cannot be used.
func diagnoseZoneState(ctx context.Context, cfg config.Config, s *store.Store) []Diagnosis {
	if cfg.Zone == "" {
		return nil
	}
	state, err := s.ZoneState(ctx)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return []Diagnosis{{partZone, Advised, "The database has no zone yet.", "Start the daemon."}}
	}
	if err != nil {
		return []Diagnosis{{partZone, Unseen, err.Error(), "Try again."}}
	}
	found := []Diagnosis{{partZone, Healthy, fmt.Sprintf("%s has the serial %d and %d names, %d of them retired.", state.Name, state.Serial, state.Names, state.Retired), ""}}
	if state.Orphaned > 0 {
		found = append(found, Diagnosis{
			partZone, Advised, fmt.Sprintf("Orphaned names, which belong to no domain since a backup was restored, are served: %d.", state.Orphaned),
			"Replace the CNAME records that lead to them, then run `dmarcd zone drop`.",
		})
	}
	if snapshot := readSnapshot(cfg); snapshot.Problem != "" {
		found = append(found, Diagnosis{
			partZone, Advised, "The snapshot " + snapshot.File + " cannot serve a start without the database: " + snapshot.Problem + ".",
			"Run this command where the daemon runs, as its user, and see the log of the daemon.",
		})
	}
	secondaries, err := askSecondaries(ctx, cfg)
	if err != nil {
		return found // diagnoseZone reports it
	}
	for _, s := range secondaries {
		switch {
		case s.Problem != "":
			found = append(found, Diagnosis{partZone, Sick, "The secondary " + s.Address + " does not serve the zone, as asked from this machine: " + s.Problem + ".", "Start it, and check its address, key and log."})
		case int64(s.Serial) != state.Serial:
			found = append(found, Diagnosis{partZone, Advised, fmt.Sprintf("The secondary %s has the serial %d.", s.Address, s.Serial), "If it does not follow within minutes, check that it accepts NOTIFY and that its key is right. One that signs the zone may count by itself."})
		default:
			found = append(found, Diagnosis{partZone, Healthy, "The secondary " + s.Address + " has this serial.", ""})
		}
	}
	return found
}
