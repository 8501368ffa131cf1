package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) recordTargetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "target",
		Short: "Publish the records of a domain at its own DNS server",
		Long: `Publishes the dmarc, spf, tls_rpt and bimi records of a domain at its own DNS server, instead
of a CNAME record: by dynamic updates with a TSIG key (rfc2136), or the HTTP API of PowerDNS.
Only one TXT value at the name of the record is changed. It applies to records that are not
managed yet; stop the others first. An SPF record is published as it is written, with at most
ten lookups. The policy of mta_sts needs the zone, and CNAME records.`,
		Args: noArguments,
		RunE: showHelp,
	}
	cmd.AddCommand(p.targetShowCommand(), p.targetSetCommand(), p.targetRemoveCommand())
	return cmd
}

func (p *program) targetShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show --team NAME DOMAIN",
		Short:   "Show the server to which the records of a domain are published",
		Example: "  dmarcd record target show --team acme example.com",
		Args:    cobra.ExactArgs(1),
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			target, err := t.RecordTarget(cmd.Context(), args[0])
			if err != nil {
				return noTarget(err, args[0])
			}
			return p.printTarget(args[0], target, *asJSON)
		})
	}
	return cmd
}

func (p *program) printTarget(domain string, target dmarcd.PublishTarget, asJSON bool) error {
	heading := []string{"DOMAIN", "KIND", "SERVER", "ZONE", "ADDED"}
	return printList(p.out, asJSON, []wire.RecordTarget{wire.NewRecordTarget(domain, target)}, heading, func(t wire.RecordTarget) []string {
		return []string{t.Domain, t.Kind, t.Server, t.Zone, t.CreatedAt}
	})
}

func (p *program) targetSetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set --team NAME DOMAIN KIND SERVER --key-file FILE",
		Short: "Add or replace the server to which the records of a domain are published",
		Long: `Tries the server and its key, and stores them; the key is encrypted. KIND is rfc2136, with
SERVER as host[:port], or powerdns, with the URL of its API.

The key is one line: [algorithm:]name:secret for rfc2136, as kdig -y has it, or that of the
API. The file name "-" reads standard input, or prompts on a terminal.`,
		Example: `  dmarcd record target set --team acme example.com rfc2136 ns1.example.com --key-file -
  dmarcd record target set --team acme example.com powerdns https://dns.example.com:8081 --key-file key`,
		Args: cobra.ExactArgs(3),
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	file := cmd.Flags().String("key-file", "", "file with the key")
	zone := cmd.Flags().String("zone", "", "zone at the server (default: the domain)")
	_ = cmd.MarkFlagRequired("key-file") // it exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		key, err := p.readPassword(*file)
		if err != nil {
			return err
		}
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			wanted := dmarcd.PublishTarget{Kind: dmarcd.TargetKind(args[1]), Server: args[2], Zone: *zone}
			target, err := t.SetRecordTarget(cmd.Context(), args[0], wanted, strings.TrimSpace(string(key)))
			if err != nil {
				return unknownDomain(err, args[0])
			}
			return p.printTarget(args[0], target, *asJSON)
		})
	}
	return cmd
}

func (p *program) targetRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove --team NAME DOMAIN",
		Short:   "Remove the server and its key; what is published there stays",
		Example: "  dmarcd record target remove --team acme example.com",
		Args:    cobra.ExactArgs(1),
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			return noTarget(t.RemoveRecordTarget(cmd.Context(), args[0]), args[0])
		})
	}
	return cmd
}

// noTarget explains an error about the target of a domain.
func noTarget(err error, domain string) error {
	if !errors.Is(err, dmarcd.ErrNotFound) {
		return err
	}
	return explained(err, "%s is no domain of the team, or its records are published to no server; `dmarcd record target set` adds one", domain)
}
