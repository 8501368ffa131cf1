package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/app"
)

// The variables that select a server. DMARCD_TOKEN would be a setting of the daemon.
const (
	serverVariable = "DMARCD_SERVER"
	tokenVariable  = "DMARCD_API_TOKEN"
)

// remoteRetries is how often a request to a server is repeated: a user waits.
const remoteRetries = 2

// apiFlags adds --team and --server to a command that works with the database or with a server.
func apiFlags(cmd *cobra.Command) {
	cmd.Flags().String("team", "", "name of the team; with --server it is that of the token")
	cmd.Flags().String("server", "", "base URL of the API of a server to use instead of the database ("+serverVariable+"); "+tokenVariable+" has the token")
}

// server returns the base URL of the server to use, nil for the database. A flag overrides the environment.
func (p *program) server(cmd *cobra.Command) (*url.URL, error) {
	flags := cmd.Flags()
	database := flags.Changed("database") || flags.Changed("data")
	given, _ := flags.GetString("server") // the flag exists
	switch {
	case flags.Changed("server") && database:
		return nil, errors.New("use --server for a server, or --database or --data for its database, not both")
	case !flags.Changed("server") && !database:
		given = p.variable(serverVariable)
	}
	if given == "" {
		if team, _ := flags.GetString("team"); team == "" { // the flag exists
			return nil, errors.New(`required flag(s) "team" not set; or use the API of a server with --server (` + serverVariable + ")")
		}
		return nil, nil //nolint:nilnil // nil means the database
	}
	server, err := url.Parse(given)
	switch {
	case err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" || server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return nil, errors.New("--server (" + serverVariable + ") must be the base URL of the API, such as https://dmarc.example.com/api")
	case p.variable(tokenVariable) == "":
		return nil, fmt.Errorf("set %s to a token for %s; `dmarcd token create` on the server prints one", tokenVariable, server)
	case server.Scheme == "http" && !isLoopback(server.Hostname()):
		return nil, fmt.Errorf("%s would send the token unencrypted; use https", server)
	}
	return server, nil
}

func isLoopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// variable returns a variable of the environment, "" if it is not set.
func (p *program) variable(name string) (value string) {
	for _, variable := range p.environ {
		if text, found := strings.CutPrefix(variable, name+"="); found {
			value = strings.TrimSpace(text)
		}
	}
	return value
}

// withClient calls f with a client of the API of a server, or of the database.
func (p *program) withClient(cmd *cobra.Command, f func(c *client.Client) error) error {
	return p.withClientOf(cmd, func(*app.Installation) error { return nil }, f)
}

// withInsight is withClient for a use case that reads who sends mail.
func (p *program) withInsight(cmd *cobra.Command, f func(c *client.Client) error) error {
	return p.withClientOf(cmd, (*app.Installation).OpenInsight, f)
}

func (p *program) withClientOf(cmd *cobra.Command, prepare func(*app.Installation) error, f func(c *client.Client) error) error {
	server, err := p.server(cmd)
	if err != nil {
		p.begun = false // wrong usage
		return err
	}
	name, _ := cmd.Flags().GetString("team") // the flag exists
	if server != nil {
		c := client.New(server.String(), p.variable(tokenVariable))
		c.UserAgent, c.Retries = "dmarcd/"+version, remoteRetries
		c.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		if err := p.checkServer(cmd, c, server, name); err != nil {
			return err
		}
		return p.explainServer(f(c), server)
	}
	return p.withInstallation(cmd, func(i *app.Installation) error {
		team, err := teamByName(cmd.Context(), system(i), name)
		if err != nil {
			return err
		}
		if err := prepare(i); err != nil {
			return err
		}
		c, end, err := i.Client(team.ID)
		if err != nil {
			return err
		}
		return errors.Join(f(c), end())
	})
}

// checkServer checks that a server is one of dmarcd, and that the token is for the team, if one is named.
func (p *program) checkServer(cmd *cobra.Command, c *client.Client, server *url.URL, team string) error {
	me, err := c.GetMe(cmd.Context())
	var answer *client.Error
	switch {
	case errors.As(err, &answer) && answer.Code == "", err == nil && me.Team.ID == "", err != nil && answer == nil && !errors.As(err, new(*url.Error)):
		return fmt.Errorf("%s is not the API of dmarcd; its base URL is such as https://dmarc.example.com/api", server)
	case errors.Is(err, dmarcd.ErrNotFound):
		return fmt.Errorf("%s: %w", server, errors.New(answer.Message))
	case err != nil:
		return p.explainServer(err, server)
	case team != "" && team != me.Team.Name:
		return fmt.Errorf("%s has a token of the team %q; leave out --team, or set a token of %q", tokenVariable, me.Team.Name, team)
	}
	return nil
}

// explainServer explains errors that only a server has.
func (p *program) explainServer(err error, server *url.URL) error {
	var unsent *url.Error
	switch {
	case errors.Is(err, dmarcd.ErrUnauthorized):
		return explained(err, "%s rejects the token; set %s to one that is valid, such as from `dmarcd token create` on the server", server, tokenVariable)
	case errors.As(err, &unsent):
		return explained(err, "%s cannot be reached: %s; check --server (%s) and the network", server, cmp.Or(unsent.Err, err), serverVariable)
	}
	return err
}

// withDomain is withClient for commands with a domain of the team.
func (p *program) withDomain(cmd *cobra.Command, input string, f func(c *client.Client, name string) error) error {
	return p.withClient(cmd, ofDomain(cmd, input, f))
}

// ofDomain calls f with the canonical name of a domain of the team.
func ofDomain(cmd *cobra.Command, input string, f func(c *client.Client, name string) error) func(c *client.Client) error {
	return func(c *client.Client) error {
		name, err := knownDomain(cmd.Context(), c, input)
		if err != nil {
			return err
		}
		return f(c, name)
	}
}
