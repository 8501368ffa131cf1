package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/app"
)

func (p *program) zoneCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "zone",
		Short: "Show the zone of managed records, its secondaries and its snapshot",
		Long: `Shows the zone of managed records (DMARCD_ZONE): its serial and names, the serials that its
secondaries answer with, and the snapshot in the data folder, which a daemon serves that starts
without its database.

Orphaned names belong to no domain: they were served, and are not in the database, because it
was restored from an older backup. They answer until "dmarcd zone drop".`,
		Example: "  dmarcd zone --json",
		Args:    noArguments,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withInstallation(cmd, func(i *app.Installation) error {
			z, err := i.ZoneStatus(cmd.Context(), system(i))
			if err != nil {
				return err
			}
			shown := newZoneShape(z)
			if *asJSON {
				return printJSON(p.out, shown)
			}
			return shown.print(p)
		})
	}
	cmd.AddCommand(p.zoneDropCommand())
	return cmd
}

func (p *program) zoneDropCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "drop",
		Short: "Drop the orphaned names of the zone: they do not exist from then on",
		Long: `Drops all orphaned names of the zone, which a restored database does not have. They answer
NXDOMAIN from then on, and are never used again. First replace the CNAME records that lead to them:
while the old record is gone, their domains have no record.`,
		Example: "  dmarcd zone drop",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withInstallation(cmd, func(i *app.Installation) error {
				dropped, err := system(i).DropOrphans(cmd.Context())
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.out, "%s dropped.\n", number(int(dropped), "name"))
				return err
			})
		},
	}
}

// zoneShape is the status of the zone in JSON.
type zoneShape struct {
	Name        string           `json:"name"`
	Serial      int64            `json:"serial"`
	Names       int              `json:"names"`
	Retired     int              `json:"retired"`
	Orphaned    int              `json:"orphaned"`
	Nameservers []string         `json:"nameservers"`
	Secondaries []secondaryShape `json:"secondaries"`
	Snapshot    snapshotShape    `json:"snapshot"`
}

type secondaryShape struct {
	Address string  `json:"address"`
	Serial  *uint32 `json:"serial"` // null if it is not known
	Problem string  `json:"problem"`
}

type snapshotShape struct {
	File    string  `json:"file"`
	Serial  *uint32 `json:"serial"` // null if it cannot be used
	Names   int     `json:"names"`
	SavedAt *string `json:"saved_at"`
	Problem string  `json:"problem"`
}

func newZoneShape(z app.ZoneStatus) zoneShape {
	shape := zoneShape{
		Name: z.Name, Serial: z.Serial, Names: z.Names, Retired: z.Retired, Orphaned: z.Orphaned, Nameservers: z.Nameservers,
		Secondaries: convert(z.Secondaries, func(s app.SecondaryStatus) secondaryShape {
			if s.Problem != "" {
				return secondaryShape{s.Address, nil, s.Problem}
			}
			return secondaryShape{s.Address, &s.Serial, ""}
		}),
		Snapshot: snapshotShape{File: z.Snapshot.File, Names: z.Snapshot.Names, Problem: z.Snapshot.Problem},
	}
	if z.Snapshot.Problem == "" {
		saved := z.Snapshot.SavedAt.Format(time.RFC3339)
		shape.Snapshot.Serial, shape.Snapshot.SavedAt = &z.Snapshot.Serial, &saved
	}
	return shape
}

func (z zoneShape) print(p *program) error {
	rows := [][]string{
		{"serial", strconv.FormatInt(z.Serial, 10)},
		{"names", fmt.Sprintf("%d, %d of them retired", z.Names, z.Retired)},
		{"orphaned names", strconv.Itoa(z.Orphaned)},
		{"name servers", strings.Join(z.Nameservers, ", ")},
	}
	for _, s := range z.Secondaries {
		state := s.Problem
		if s.Serial != nil {
			state = fmt.Sprintf("serial %d", *s.Serial)
		}
		rows = append(rows, []string{"secondary " + s.Address, state})
	}
	state := z.Snapshot.Problem
	if z.Snapshot.Serial != nil {
		state = fmt.Sprintf("serial %d, %d names, saved %s", *z.Snapshot.Serial, z.Snapshot.Names, *z.Snapshot.SavedAt)
	}
	rows = append(rows, []string{"snapshot", z.Snapshot.File + ": " + state})
	if err := printTable(p.out, []string{"ZONE", z.Name}, rows); err != nil {
		return err
	}
	if z.Orphaned > 0 {
		p.notify("The orphaned names belong to no domain; `dmarcd zone drop` drops them.\n")
	}
	return nil
}
