package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) userCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Manage users of the web interface", Args: noArguments, RunE: showHelp}
	cmd.AddCommand(p.userInviteCommand(), p.userListCommand(), p.userResetFactorCommand(), p.userRemoveCommand())
	return cmd
}

func (p *program) userInviteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "invite EMAIL",
		Short: "Create a one-time sign-in link and print it; it is not shown again",
		Long: `Creates a link that signs the user in once, within 7 days, and prints it. A new user
chooses a password there; an existing user can reset theirs. Anyone with the link can use
it: send it over a secure channel.`,
		Example: `  dmarcd user invite ann@example.com --team acme --role editor
  dmarcd user invite bob@example.com --operator`,
		Args: cobra.ExactArgs(1),
	}
	team := cmd.Flags().String("team", "", "name of the team that the user joins (default: none)")
	role := cmd.Flags().String("role", "", "role in that team: owner, editor or viewer (default: viewer)")
	operator := cmd.Flags().Bool("operator", false, "make the user an operator of the whole installation")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *role != "" && *team == "" {
			return errors.New("--role needs --team")
		}
		parsed, err := dmarcd.ParseRole(cmp.Or(*role, string(dmarcd.RoleViewer)))
		if err != nil {
			return wrongUsage(err)
		}
		email, err := dmarcd.ParseEmail(args[0])
		if err != nil {
			return err
		}
		return p.withNewInstallation(cmd, func(i *app.Installation) error {
			invitation := dmarcd.Invitation{Email: email, Operator: *operator}
			if *team != "" {
				joined, err := teamByName(cmd.Context(), system(i), *team)
				if err != nil {
					return err
				}
				invitation.Team, invitation.Role = joined.ID, parsed
			}
			return p.invite(cmd.Context(), system(i), invitation)
		})
	}
	return cmd
}

// invite creates an invitation and prints its link.
func (p *program) invite(ctx context.Context, s *service.System, invitation dmarcd.Invitation) error {
	sent, err := s.Invite(ctx, invitation)
	if errors.Is(err, service.ErrNoRights) {
		return errors.New("a new user needs --team, --operator or both")
	}
	if err != nil {
		return err
	}
	if sent.Mailed {
		p.notify("The invitation was sent to %s.\n", invitation.Email)
	}
	_, err = fmt.Fprintln(p.out, sent.Link)
	return err
}

// userShape is a user in JSON.
type userShape struct {
	ID         string            `json:"id"`
	Email      string            `json:"email"`
	Name       string            `json:"name"`
	Password   bool              `json:"password"`
	Operator   bool              `json:"operator"`
	Factor     bool              `json:"second_factor"`
	Teams      []membershipShape `json:"teams"`
	CreatedAt  string            `json:"created_at"`
	SignedInAt *string           `json:"signed_in_at"` // null: never
}

type membershipShape struct {
	Team string `json:"team"`
	Role string `json:"role"`
}

func newUserShape(user dmarcd.User, memberships []dmarcd.Membership) userShape {
	shape := userShape{
		ID: user.ID.String(), Email: user.Email, Name: user.Name, Password: user.Password, Operator: user.Operator, Factor: user.SecondFactor,
		Teams: convert(memberships, func(m dmarcd.Membership) membershipShape {
			return membershipShape{Team: m.Team.Name, Role: string(m.Role)}
		}),
		CreatedAt: wire.Time(user.CreatedAt),
	}
	if !user.SignedInAt.IsZero() {
		shape.SignedInAt = new(wire.Time(user.SignedInAt))
	}
	return shape
}

func (p *program) userListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List all users with their teams", Example: "  dmarcd user list --json", Args: cobra.NoArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withInstallation(cmd, func(i *app.Installation) error {
			users, err := system(i).Users(cmd.Context())
			if err != nil {
				return err
			}
			memberships, err := system(i).AllMemberships(cmd.Context())
			if err != nil {
				return err
			}
			shapes := convert(users, func(u dmarcd.User) userShape { return newUserShape(u, memberships[u.ID]) })
			heading := []string{"ID", "EMAIL", "NAME", "PASSWORD", "OPERATOR", "SECOND FACTOR", "TEAMS", "CREATED", "LAST SIGN-IN"}
			return printList(p.out, *asJSON, shapes, heading, func(u userShape) []string {
				teams := strings.Join(convert(u.Teams, func(m membershipShape) string { return m.Team + " (" + m.Role + ")" }), ", ")
				return []string{
					u.ID, u.Email, orDash(&u.Name), yesNo(u.Password), yesNo(u.Operator), yesNo(u.Factor), orDash(&teams), u.CreatedAt, orDash(u.SignedInAt),
				}
			})
		})
	}
	return cmd
}

// withUser calls f with the user who has an email address.
func (p *program) withUser(cmd *cobra.Command, address string, f func(i *app.Installation, user dmarcd.User) error) error {
	email, err := dmarcd.ParseEmail(address)
	if err != nil {
		return err
	}
	return p.withInstallation(cmd, func(i *app.Installation) error {
		user, err := system(i).UserByEmail(cmd.Context(), email)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return explained(err, "there is no user %s; `dmarcd user list` lists all users", email)
		}
		if err != nil {
			return err
		}
		return f(i, user)
	})
}

func (p *program) userResetFactorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reset-factor EMAIL",
		Short: "Remove the second factor of a user who lost it, and end their sessions",
		Long: `Removes the authenticator app, the passkeys and the recovery codes of a user, and ends their
sessions. The user then signs in with the password alone, and sets up a second factor again. Verify first,
over another channel than email, that it is the user who asks for it.`,
		Example: "  dmarcd user reset-factor ann@example.com",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withUser(cmd, args[0], func(i *app.Installation, user dmarcd.User) error {
				err := system(i).ResetSecondFactor(cmd.Context(), user)
				if errors.Is(err, dmarcd.ErrNotFound) {
					return explained(err, "%s has no second factor; `dmarcd user list` shows who has one", user.Email)
				}
				return err
			})
		},
	}
}

func (p *program) userRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove EMAIL",
		Short:   "Remove a user and end their sessions; tokens and data of their teams are not deleted",
		Example: "  dmarcd user remove ann@example.com",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withUser(cmd, args[0], func(i *app.Installation, user dmarcd.User) error {
				ownerless, err := system(i).RemoveUser(cmd.Context(), user.ID)
				if err != nil {
					return err
				}
				for _, team := range ownerless {
					p.notify("The team %q no longer has an owner. Invite one with `dmarcd user invite`.\n", team)
				}
				return nil
			})
		},
	}
}
