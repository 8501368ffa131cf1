package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// writes describes a tool that changes something. To call it again with the same arguments has no
// further effect.
func writes(name, title, description string, destructive bool) sdk.Tool {
	return sdk.Tool{Name: name, Title: title, Description: description, Annotations: &sdk.ToolAnnotations{
		Title: title, DestructiveHint: &destructive, IdempotentHint: true, OpenWorldHint: new(false),
	}}
}

func (s *Server) addWrites() {
	verify := writes("verify_domain", "Check a domain now",
		"Checks the DMARC record of a domain in the DNS now, and stores what it found. Use it after a change of the DNS.", false)
	verify.Annotations.OpenWorldHint = new(true)
	register(s, verify, verifyDomain)
	register(s, writes("classify_sender", "Classify a sender",
		"Sets the class of a sender for a domain, and replaces the one before. All figures and advice follow from it: ask the user first.", true), classifySender)
	register(s, writes("acknowledge_alert", "Acknowledge an alert",
		"Records that someone took note of an alert. This cannot be undone: ask the user first.", true), s.acknowledgeAlert)
}

func verifyDomain(ctx context.Context, team *service.Team, in named) (result answer, err error) {
	domain, check, err := team.Verify(ctx, in.Domain)
	if err != nil {
		return result, err
	}
	return bounded(map[string]any{"domain": wire.NewDomain(domain), "conclusive": check.Conclusive, "reason": check.Reason}), nil
}

type classInput struct {
	named
	Key   string `json:"key" jsonschema:"the key of the sender, as list_senders has it"`
	Class class  `json:"class" jsonschema:"yours, forwarder, unknown or spoofing; automatic lets the reports decide"`
}

func classifySender(ctx context.Context, team *service.Team, in classInput) (result answer, err error) {
	key, err := dmarcd.ParseSenderKey(in.Key)
	if err != nil {
		return result, err
	}
	domain, err := team.Domain(ctx, in.Domain)
	if err != nil {
		return result, err
	}
	var class dmarcd.Class // "" is automatic
	if in.Class != "automatic" {
		if class, err = dmarcd.ParseSenderClass(string(in.Class)); err != nil {
			return result, err
		}
	}
	return bounded(wire.NewSenderClass(domain.Name, key, class)), team.SetSenderClass(ctx, domain.Name, key, class)
}

type alertInput struct {
	Seq int64 `json:"seq" jsonschema:"the seq of the alert, as list_alerts has it"`
}

func (s *Server) acknowledgeAlert(ctx context.Context, team *service.Team, in alertInput) (result answer, err error) {
	alert, err := team.AcknowledgeAlert(ctx, in.Seq)
	if err != nil {
		return result, err
	}
	return bounded(wire.NewAlert(alert, s.options.BaseURL)), nil
}
