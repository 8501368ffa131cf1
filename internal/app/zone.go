package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/zone"
)

// zonePoll is the time between two polls for changes of the zone. A change of another process is
// served within 2 s.
const zonePoll = time.Second

// zoneNames is the number of names per query at the start.
const zoneNames = 5000

// zoneServer answers for managed records from memory. While the database is away it serves what it
// read last, and at the start what the snapshot has.
type zoneServer struct {
	store         *store.Store // nil until open
	zone          *zone.Zone
	server        *zone.Server
	log           *slog.Logger
	servers       []zone.Nameserver
	configuration string
	serial        int64 // of the database, at the last poll
	// below has the names below those that are served, by their label.
	below map[string][]string

	snapshot     string        // the file
	restored     bool          // it was read
	saved        uint32        // the serial in it
	saveFailures atomic.Uint64 // for metrics
	polled       atomic.Int64  // the time of the last poll, in Unix seconds

	stop  context.CancelFunc // nil until start
	ended chan error         // of the server
}

// snapshotPath returns the file with the snapshot of the zone.
func snapshotPath(cfg config.Config) string { return filepath.Join(cfg.Data, "zone.snapshot") }

// listenForZone listens for DNS, and reads the snapshot of the zone. open or start begins to answer.
func (a *App) listenForZone(ctx context.Context) (*zoneServer, error) {
	cfg := a.config
	secondaries, err := zoneSecondaries(cfg)
	if err != nil {
		return nil, err
	}
	z := &zoneServer{
		log: a.log, servers: zoneServers(cfg), snapshot: snapshotPath(cfg),
		configuration: fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(slices.Concat(cfg.ZoneNameservers, cfg.ZoneAddresses), ",")))),
	}
	if err := z.restore(ctx, cfg.Zone); err != nil {
		return nil, err
	}
	z.server, err = zone.Listen(ctx, zone.Options{Zone: z.zone, Listen: cfg.ZoneListen, Secondaries: secondaries, Log: a.log, Recovered: a.recovered})
	if err != nil {
		return nil, fmt.Errorf("listen for DNS (set DMARCD_ZONE_LISTEN to use another address): %w", err)
	}
	return z, nil
}

// zoneServers returns the configured name servers.
func zoneServers(cfg config.Config) []zone.Nameserver {
	configured, _ := cfg.Nameservers()
	servers := make([]zone.Nameserver, len(configured))
	for i, server := range configured {
		servers[i] = zone.Nameserver(server)
	}
	return servers
}

// restore creates the zone with the names of the snapshot. One that is damaged, or of another zone, is
// not used.
func (z *zoneServer) restore(ctx context.Context, apex string) (err error) {
	if z.zone, err = zone.New(apex, 0, z.servers); err != nil {
		return err
	}
	switch err := z.zone.Restore(z.snapshot); {
	case err == nil:
		z.restored, z.saved = true, z.zone.Serial()
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		z.log.WarnContext(ctx, "snapshot of the zone not used", "file", z.snapshot, "error", err)
	}
	z.zone, err = zone.New(apex, 0, z.servers)
	return err
}

// start begins to answer. close ends it.
func (z *zoneServer) start(ctx context.Context) {
	ctx, z.stop = context.WithCancel(context.WithoutCancel(ctx))
	z.ended = make(chan error, 1)
	go func() { z.ended <- z.server.Run(ctx) }()
}

// answers reports whether queries are answered already.
func (z *zoneServer) answers() bool { return z.stop != nil }

// open reads the zone of the database, and begins to answer.
func (z *zoneServer) open(ctx context.Context, s *store.Store) error {
	z.store = s
	if err := z.reload(ctx); err != nil {
		return err
	}
	if !z.answers() {
		z.start(ctx)
	}
	return nil
}

func (z *zoneServer) close() error {
	if !z.answers() {
		return z.server.Close()
	}
	z.stop()
	err := <-z.ended
	z.ended <- nil // it may be closed again
	return err
}

// reload serves the names of the database instead of what is served. A backup may have been
// restored: serials do not go backwards, and names that the database does not have remain served.
func (z *zoneServer) reload(ctx context.Context) (err error) {
	before := z.below
	z.below = make(map[string][]string)
	defer func() {
		if err != nil {
			z.below = before
		}
	}()
	began, err := z.store.OpenZone(ctx, z.zone.Apex(), z.configuration)
	if err != nil {
		return fmt.Errorf("open the zone (DMARCD_ZONE): %w", err)
	}
	fresh, err := zone.New(z.zone.Apex(), 0, z.servers)
	if err != nil {
		return err
	}
	if err := z.load(ctx, fresh); err != nil {
		return fmt.Errorf("read the zone: %w", err)
	}
	atLeast := int64(z.zone.Serial())
	if !z.zone.Same(fresh) {
		atLeast++
	}
	_, orphaned, err := z.store.ContinueZone(ctx, atLeast, z.servedWithout(fresh))
	if err != nil {
		return fmt.Errorf("continue the zone: %w", err)
	}
	if len(orphaned) > 0 {
		z.log.WarnContext(ctx, "names of the zone are not in the database, and remain served until `dmarcd zone drop`", "names", len(orphaned))
	}
	serial, changed, err := z.store.ZoneChanges(ctx, began)
	if err != nil {
		return fmt.Errorf("read the changes of the zone: %w", err)
	}
	if err := fresh.Load(z.changes(changed)); err != nil {
		z.log.WarnContext(ctx, "managed records not served", "error", err)
	}
	z.zone.Become(fresh, uint32(serial)) //nolint:gosec // the time, until 2106
	z.serial = serial
	z.polled.Store(time.Now().Unix())
	z.server.Changed()
	return nil
}

// servedWithout returns the names that are served and that another zone does not have.
func (z *zoneServer) servedWithout(other *zone.Zone) []store.ZoneName {
	found := make(map[string][]store.ZoneRecord)
	for name, records := range z.zone.Names() {
		if other.Has(name) {
			continue
		}
		sub, label := "", strings.TrimSuffix(name, "."+z.zone.Apex())
		if dot := strings.LastIndexByte(label, '.'); dot >= 0 {
			sub, label = label[:dot], label[dot+1:]
		}
		for _, r := range records {
			found[label] = append(found[label], store.ZoneRecord{Sub: sub, Type: r.Type, Data: r.Data})
		}
	}
	names := make([]store.ZoneName, 0, len(found))
	for _, label := range slices.Sorted(maps.Keys(found)) {
		names = append(names, store.ZoneName{Label: label, Records: found[label]})
	}
	return names
}

// zoneSecondaries parses the servers that may transfer the zone.
func zoneSecondaries(cfg config.Config) ([]zone.Secondary, error) {
	var secondaries []zone.Secondary
	for _, item := range cfg.ZoneSecondaries {
		secondary, err := zone.ParseSecondary(item)
		if err != nil {
			return nil, fmt.Errorf("secondary server in DMARCD_ZONE_SECONDARIES: %w", err)
		}
		secondaries = append(secondaries, secondary)
	}
	return secondaries, nil
}

// load reads all names into a zone. What changes meanwhile is read by the caller.
func (z *zoneServer) load(ctx context.Context, into *zone.Zone) error {
	for after := ""; ; {
		names, err := z.store.ZoneNames(ctx, after, zoneNames)
		if err != nil {
			return err
		}
		if err := into.Load(z.changes(names)); err != nil {
			z.log.WarnContext(ctx, "managed records not served", "error", err)
		}
		if len(names) < zoneNames {
			return nil
		}
		after = names[len(names)-1].Label
	}
}

// changes converts names of the store. What was below a name and has no records now is removed.
func (z *zoneServer) changes(names []store.ZoneName) []zone.Change {
	changes := make([]zone.Change, 0, len(names))
	for _, n := range names {
		subs := append([]string{""}, z.below[n.Label]...)
		for _, r := range n.Records {
			if !slices.Contains(subs, r.Sub) {
				subs = append(subs, r.Sub)
			}
		}
		delete(z.below, n.Label)
		for _, sub := range subs {
			change := zone.Change{Name: n.Label + "." + z.zone.Apex()}
			if sub != "" {
				change.Name = sub + "." + change.Name
			}
			for _, r := range n.Records {
				if r.Sub == sub {
					change.Records = append(change.Records, zone.Record{Type: r.Type, Data: r.Data})
				}
			}
			if sub != "" && len(change.Records) > 0 {
				z.below[n.Label] = append(z.below[n.Label], sub)
			}
			changes = append(changes, change)
		}
	}
	return changes
}

// run polls and saves until ctx ends, or the server fails.
func (z *zoneServer) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer z.stop()
		select {
		case <-ctx.Done():
			return nil
		case err := <-z.ended:
			z.ended <- nil // for close
			return err
		}
	})
	group.Go(func() error {
		ticks := time.NewTicker(zonePoll)
		defer ticks.Stop()
		away := false
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticks.C:
			}
			err := z.poll(ctx)
			if err != nil && !away && ctx.Err() == nil {
				z.log.WarnContext(ctx, "zone not updated, the last state is served", "error", err)
			}
			away = err != nil
		}
	})
	group.Go(func() error { return z.saveRegularly(ctx) })
	return group.Wait()
}

// poll serves what changed since the last poll.
func (z *zoneServer) poll(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	serial, changed, err := z.store.ZoneChanges(limited, z.serial)
	switch {
	case errors.Is(err, dmarcd.ErrNotFound), err == nil && serial < z.serial:
		return z.reload(ctx) // a backup was restored
	case err != nil:
		return err
	}
	z.polled.Store(time.Now().Unix())
	if serial == z.serial {
		return nil
	}
	z.serial = serial
	err = z.zone.Apply(uint32(serial), z.changes(changed)) //nolint:gosec // the time, until 2106
	z.server.Changed()
	if err != nil {
		z.log.WarnContext(ctx, "managed records not served", "error", err)
	}
	return nil
}

const (
	// snapshotPause is the least time between two snapshots.
	snapshotPause = time.Second
	// snapshotShare is the part of the time that snapshots of a large zone take.
	snapshotShare = 20
)

// saveRegularly saves the zone after changes, and once more when ctx ends.
func (z *zoneServer) saveRegularly(ctx context.Context) error {
	failed := false
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			_ = z.save() // it was logged if it failed before
			return nil
		case <-time.After(pause):
		}
		began := time.Now()
		err := z.save()
		pause = max(snapshotPause, snapshotShare*time.Since(began))
		if err != nil && !failed {
			z.log.WarnContext(ctx, "snapshot of the zone not saved, a restart needs the database", "file", z.snapshot, "error", err)
		}
		failed = err != nil
	}
}

// save saves the zone if it has changed since.
func (z *zoneServer) save() error {
	serial := z.zone.Serial()
	if serial == z.saved {
		return nil
	}
	if err := z.zone.Save(z.snapshot); err != nil {
		z.saveFailures.Add(1)
		return err
	}
	z.saved = serial // what was saved may be newer: then it is saved again
	return nil
}

const partZone = "zone"

// diagnoseZone asks the DNS for the delegation of the zone, and each of its name servers at each of its
// addresses.
func diagnoseZone(ctx context.Context, cfg config.Config, r dns.Resolver) []Diagnosis {
	if cfg.Zone == "" {
		return nil
	}
	if _, err := zoneSecondaries(cfg); err != nil {
		return []Diagnosis{{partZone, Sick, err.Error(), "Correct DMARCD_ZONE_SECONDARIES."}}
	}
	servers, _ := cfg.Nameservers()
	found := []Diagnosis{diagnoseDelegation(cfg.Zone, servers, r.Resolve(ctx, dns.Question{Name: cfg.Zone, Type: dns.NS}))}
	for _, server := range servers {
		addresses := server.Addresses
		if len(addresses) == 0 {
			for _, kind := range []dns.Type{dns.A, dns.AAAA} {
				for _, record := range r.Resolve(ctx, dns.Question{Name: server.Name, Type: kind}).Records {
					addresses = append(addresses, record.Addr)
				}
			}
		}
		if len(addresses) == 0 {
			found = append(found, Diagnosis{partZone, Sick, "The name server " + server.Name + " has no address.", "Publish an A or AAAA record for it, or add its address to DMARCD_ZONE_NAMESERVERS."})
		}
		for _, address := range addresses {
			found = append(found, diagnoseNameserver(ctx, cfg, server.Name, netip.AddrPortFrom(address, 53)))
		}
	}
	return found
}

// diagnoseDelegation compares the NS records with the configuration.
func diagnoseDelegation(name string, servers []config.Nameserver, answer dns.Answer) Diagnosis {
	switch answer.Outcome {
	case dns.Data:
	case dns.Inconclusive:
		return Diagnosis{partZone, Unseen, "The NS lookup for " + name + " failed: " + answer.Reason, "Try again when DNS works and dmarcd runs."}
	default:
		return Diagnosis{partZone, Sick, name + " is not delegated: it has no NS records.", "Add NS records for its name servers to the parent zone."}
	}
	var published, missing []string
	for _, record := range answer.Records {
		published = append(published, strings.ToLower(strings.TrimSuffix(record.Host, ".")))
	}
	for _, server := range servers {
		if !slices.Contains(published, server.Name) {
			missing = append(missing, server.Name)
		}
	}
	what := name + " is delegated to " + strings.Join(published, ", ")
	if len(missing) > 0 {
		return Diagnosis{partZone, Sick, what + ", but not to " + strings.Join(missing, ", ") + ".", "Add NS records to the parent zone, or correct DMARCD_ZONE_NAMESERVERS."}
	}
	return Diagnosis{partZone, Healthy, what + ", as asked from this machine.", ""}
}

// diagnoseNameserver asks a name server for the zone, from this machine.
func diagnoseNameserver(ctx context.Context, cfg config.Config, name string, at netip.AddrPort) Diagnosis {
	cfg.DNS = []string{at.String()}
	r := NewResolver(cfg, nil, nil)
	defer r.Close()
	who := name + " at " + at.String()
	answer := r.Resolve(ctx, dns.Question{Name: cfg.Zone, Type: dns.NS})
	if answer.Outcome == dns.Data {
		return Diagnosis{partZone, Healthy, who + " answers for " + cfg.Zone + ", as asked from this machine.", ""}
	}
	return Diagnosis{
		partZone, Sick, who + " does not answer for " + cfg.Zone + ", as asked from this machine. " + answer.Reason,
		"Start dmarcd or the secondary there, and open port 53 for UDP and TCP. A machine may not reach its own public address: ask from another one, too.",
	}
}
