package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
)

func (p *program) senderCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sender",
		Short: "Manage the senders that a team adds to the catalogue, or corrects",
		Long: `Senders that a team adds to the catalogue, or corrects, for its own domains. Set the class
of a sender for one domain with "dmarcd domain sender".`,
		Args: noArguments,
		RunE: showHelp,
	}
	cmd.AddCommand(p.senderAddCommand(), p.senderListCommand(), p.senderRemoveCommand())
	return cmd
}

func (p *program) senderAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add --team NAME KEY TITLE",
		Short: "Add a sender, or replace or correct one",
		Long: `Adds a sender with a key and a title. Mail belongs to it if its address is in one of the
networks, if its host has one of the names, or if one of the domains passes DKIM or SPF.

With the key of a known sender or of an autonomous system, as "dmarcd advise" prints it, the
title replaces the name, and nothing else is needed. A sender that was added before is
replaced. The reports decide on the class unless it is given.`,
		Example: `  dmarcd sender add --team acme our-crm "Our CRM" --network 192.0.2.0/24 --class yours
  dmarcd sender add --team acme shop "Web shop" --domain bounce.shop.example --host out.shop.example
  dmarcd sender add --team acme AS64496 "Data centre in Utrecht"`,
		Args: cobra.ExactArgs(2),
	}
	apiFlags(cmd)
	asJSON := jsonFlag(cmd)
	class := cmd.Flags().String("class", "", "for all domains: yours, service, forwarder, unknown or spoofing")
	networks := cmd.Flags().StringSlice("network", nil, "an address or network of the sender; may be repeated")
	hosts := cmd.Flags().StringSlice("host", nil, "a name of its hosts, with all names below it; may be repeated")
	domains := cmd.Flags().StringSlice("domain", nil, "a domain that it signs with or sends from, with all names below it; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wanted := client.TeamSender{Key: args[0], Name: args[1], Networks: *networks, Hosts: *hosts, Domains: *domains}
		if *class != "" {
			wanted.Class = class
		}
		return p.withInsight(cmd, func(c *client.Client) error {
			added, err := c.SetTeamSender(cmd.Context(), wanted)
			if err != nil || !*asJSON {
				return err
			}
			return printJSON(p.out, added)
		})
	}
	return cmd
}

func (p *program) senderListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list --team NAME",
		Short:   "List the senders that a team added or corrected",
		Example: "  dmarcd sender list --team acme --json",
		Args:    cobra.NoArgs,
	}
	apiFlags(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withClient(cmd, func(c *client.Client) error {
			senders, err := client.Collect(c.ListTeamSenders(cmd.Context()))
			if err != nil {
				return err
			}
			return printList(p.out, *asJSON, senders, []string{"KEY", "NAME", "CLASS", "NETWORKS", "HOSTS", "DOMAINS"}, func(s client.TeamSender) []string {
				return []string{s.Key, s.Name, orDash(s.Class), strings.Join(s.Networks, ","), strings.Join(s.Hosts, ","), strings.Join(s.Domains, ",")}
			})
		})
	}
	return cmd
}

func (p *program) senderRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove --team NAME KEY",
		Short:   "Remove a sender that a team added, or its correction",
		Example: "  dmarcd sender remove --team acme our-crm",
		Args:    cobra.ExactArgs(1),
	}
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withClient(cmd, func(c *client.Client) error {
			err := c.RemoveTeamSender(cmd.Context(), args[0])
			if errors.Is(err, dmarcd.ErrNotFound) {
				return explained(err, "the team did not add a sender %s; `dmarcd sender list` shows those it added", args[0])
			}
			return err
		})
	}
	return cmd
}
