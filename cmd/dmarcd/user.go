package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) userCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "People who sign in on the web page", Args: noArguments, RunE: showHelp}
	cmd.AddCommand(p.userInviteCommand(), p.userListCommand(), p.userRemoveCommand())
	return cmd
}

func (p *program) userInviteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "invite EMAIL",
		Short: "Make a one-time sign-in link and print it, this once",
		Long: `Makes a link that signs the person in once, within 7 days, and prints it on
standard output. A person who is new chooses a password there; one who has
forgotten theirs may choose another. Whoever has the link can use it: send it
over a safe channel.`,
		Example: `  dmarcd user invite ann@example.com --team acme --role editor
  dmarcd user invite bob@example.com --operator`,
		Args: cobra.ExactArgs(1),
	}
	team := cmd.Flags().String("team", "", "the name of the team that the person joins (default: none)")
	role := cmd.Flags().String("role", "", "owner, editor or viewer of that team (default: viewer)")
	operator := cmd.Flags().Bool("operator", false, "let the person see and manage the whole installation")
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
		return p.withNewStore(cmd, func(cfg config.Config, s *store.Store) error {
			invite := dmarcd.Invite{Email: email, Operator: *operator}
			if *team != "" {
				joined, err := teamByName(cmd.Context(), s, *team)
				if err != nil {
					return err
				}
				invite.Team, invite.Role = joined.ID, parsed
			}
			return p.invite(cmd.Context(), cfg, s, invite)
		})
	}
	return cmd
}

// invite keeps an invite and prints its link. Somebody who would be able to do
// nothing on the page is not invited.
func (p *program) invite(ctx context.Context, cfg config.Config, s *store.Store, invite dmarcd.Invite) error {
	if invite.Team == 0 && !invite.Operator {
		_, err := s.UserByEmail(ctx, invite.Email)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return errors.New("a new user needs --team, --operator or both")
		}
		if err != nil {
			return err
		}
	}
	link, err := p.system(cfg, s).Invite(ctx, invite)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, link)
	return err
}

// userShape is a user in JSON.
type userShape struct {
	ID         string            `json:"id"`
	Email      string            `json:"email"`
	Name       string            `json:"name"`
	Password   bool              `json:"password"`
	Operator   bool              `json:"operator"`
	Teams      []membershipShape `json:"teams"`
	CreatedAt  string            `json:"created_at"`
	SignedInAt *string           `json:"signed_in_at"` // null: not yet
}

type membershipShape struct {
	Team string `json:"team"`
	Role string `json:"role"`
}

func newUserShape(user dmarcd.User, memberships []dmarcd.Membership) userShape {
	shape := userShape{
		ID: user.ID.String(), Email: user.Email, Name: user.Name, Password: user.Password, Operator: user.Operator,
		Teams: convert(memberships, func(m dmarcd.Membership) membershipShape {
			return membershipShape{Team: m.Team.Name, Role: string(m.Role)}
		}),
		CreatedAt: wire.Time(user.CreatedAt),
	}
	if !user.SignedInAt.IsZero() {
		at := wire.Time(user.SignedInAt)
		shape.SignedInAt = &at
	}
	return shape
}

func (p *program) userListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List all users with their teams", Example: "  dmarcd user list --json", Args: cobra.NoArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withStore(cmd, func(_ config.Config, s *store.Store) error {
			users, err := s.Users(cmd.Context())
			if err != nil {
				return err
			}
			shapes := make([]userShape, len(users))
			for i, user := range users {
				memberships, err := s.Memberships(cmd.Context(), user.ID)
				if err != nil {
					return err
				}
				shapes[i] = newUserShape(user, memberships)
			}
			heading := []string{"ID", "EMAIL", "NAME", "PASSWORD", "OPERATOR", "TEAMS", "CREATED", "LAST SIGN-IN"}
			return printList(p.out, *asJSON, shapes, heading, func(u userShape) []string {
				teams := strings.Join(convert(u.Teams, func(m membershipShape) string { return m.Team + " (" + m.Role + ")" }), ", ")
				return []string{
					u.ID, u.Email, orDash(&u.Name), yesNo(u.Password), yesNo(u.Operator), orDash(&teams), u.CreatedAt, orDash(u.SignedInAt),
				}
			})
		})
	}
	return cmd
}

func (p *program) userRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove EMAIL",
		Short:   "Remove a user and end their sessions; tokens and data of their teams stay",
		Example: "  dmarcd user remove ann@example.com",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			email, err := dmarcd.ParseEmail(args[0])
			if err != nil {
				return err
			}
			return p.withStore(cmd, func(cfg config.Config, s *store.Store) error {
				user, err := s.UserByEmail(cmd.Context(), email)
				if errors.Is(err, dmarcd.ErrNotFound) {
					return fmt.Errorf("there is no user %s; `dmarcd user list` shows all: %w", email, err)
				}
				if err != nil {
					return err
				}
				ownerless, err := p.system(cfg, s).RemoveUser(cmd.Context(), user.ID)
				if err != nil {
					return err
				}
				for _, team := range ownerless {
					p.say("The team %q has no owner any more: `dmarcd user invite` makes one.\n", team)
				}
				return nil
			})
		},
	}
}
