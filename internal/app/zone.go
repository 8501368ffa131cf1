package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

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
// read last.
type zoneServer struct {
	store  *store.Store
	zone   *zone.Zone
	server *zone.Server
	log    *slog.Logger
	serial int64
	// below has the names below those that are served, by their label.
	below map[string][]string
}

// listenForZone reads the zone and listens for DNS.
func (a *App) listenForZone(ctx context.Context) (*zoneServer, error) {
	cfg := a.config
	secondaries, err := zoneSecondaries(cfg)
	if err != nil {
		return nil, err
	}
	configured, _ := cfg.Nameservers()
	servers := make([]zone.Nameserver, len(configured))
	for i, server := range configured {
		servers[i] = zone.Nameserver(server)
	}
	z := &zoneServer{store: a.store, log: a.log, below: make(map[string][]string)}
	if z.serial, err = a.store.OpenZone(ctx, cfg.Zone, fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(cfg.ZoneNameservers, ","))))); err != nil {
		return nil, fmt.Errorf("open the zone (DMARCD_ZONE): %w", err)
	}
	if z.zone, err = zone.New(cfg.Zone, uint32(z.serial), servers); err != nil { //nolint:gosec // the time, until 2106
		return nil, err
	}
	if err := z.load(ctx); err != nil {
		return nil, fmt.Errorf("read the zone: %w", err)
	}
	z.server, err = zone.Listen(ctx, zone.Options{Zone: z.zone, Listen: cfg.ZoneListen, Secondaries: secondaries, Log: a.log, Recovered: a.recovered})
	if err != nil {
		return nil, fmt.Errorf("listen for DNS (set DMARCD_ZONE_LISTEN to use another address): %w", err)
	}
	return z, nil
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

// load reads all names. What changes meanwhile is read by the next poll.
func (z *zoneServer) load(ctx context.Context) error {
	for after := ""; ; {
		names, err := z.store.ZoneNames(ctx, after, zoneNames)
		if err != nil {
			return err
		}
		if err := z.zone.Load(z.changes(names)); err != nil {
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

// run answers and polls until ctx ends.
func (z *zoneServer) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return z.server.Run(ctx) })
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
	return group.Wait()
}

// poll serves what changed since the last poll.
func (z *zoneServer) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	serial, changed, err := z.store.ZoneChanges(ctx, z.serial)
	if err != nil || serial <= z.serial { // less, where a backup was restored
		return err
	}
	z.serial = serial
	err = z.zone.Apply(uint32(serial), z.changes(changed)) //nolint:gosec // the time, until 2106
	z.server.Changed()
	if err != nil {
		z.log.WarnContext(ctx, "managed records not served", "error", err)
	}
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
