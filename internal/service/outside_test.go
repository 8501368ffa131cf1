package service_test

import (
	"bytes"
	"context"
	"net/netip"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
)

// mailer sends nothing.
type mailer struct{ service.Mailer }

func (mailer) SendInvitation(context.Context, string, string, string) error { return nil }

func (mailer) SendConfirmation(context.Context, string, dmarcd.Webhook, string) error { return nil }

// nameless has no names of addresses.
type nameless struct{}

func (nameless) Known(context.Context, dmarcd.TeamID, []netip.Addr) (map[netip.Addr]string, error) {
	return nil, nil
}

// plainSecrets does not encrypt.
type plainSecrets struct{}

func (plainSecrets) Seal(plain []byte, _ string) ([]byte, error)  { return bytes.Clone(plain), nil }
func (plainSecrets) Current([]byte) (bool, error)                 { return true, nil }
func (plainSecrets) Open(sealed []byte, _ string) ([]byte, error) { return sealed, nil }

// mailboxes logs in with the password itself.
type mailboxes struct{ *world }

func (mailboxes) Secret(password string, _ *service.OAuth) ([]byte, error) {
	return []byte(password), nil
}

func (m mailboxes) Try(ctx context.Context, _ dmarcd.Mailbox, secret []byte) ([]byte, error) {
	return secret, m.tryMailbox(ctx)
}

func (mailboxes) Explain(m dmarcd.Mailbox) string {
	if strings.HasPrefix(m.Error, "sign-in: ") {
		return "The sign-in failed."
	}
	return ""
}

// nowhere permits no address.
type nowhere struct{}

func (nowhere) Permits(netip.Addr) bool { return false }

// deliveries delivers by a function, selfTests sends by one.
type (
	deliveries func(ctx context.Context, claimed dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error)
	selfTests  func(ctx context.Context, address, domain, id string) ([]dmarcd.SelfTestStage, bool)
)

func (d deliveries) Deliver(ctx context.Context, claimed dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
	return d(ctx, claimed)
}

func (s selfTests) Send(ctx context.Context, address, domain, id string) ([]dmarcd.SelfTestStage, bool) {
	return s(ctx, address, domain, id)
}
