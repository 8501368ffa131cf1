package client

import "github.com/dmarcd/dmarcd/internal/wire"

// The shapes of the API. Times are strings such as 2026-11-17T10:00:00+00:00.
//
//nolint:revive // the comments of the shapes are in package wire
type (
	Acknowledged      = wire.Acknowledged
	Advice            = wire.Advice
	Alert             = wire.Alert
	AlertRules        = wire.AlertRules
	AuditEntry        = wire.AuditEntry
	Check             = wire.StoredCheck
	Daily             = wire.Daily
	Domain            = wire.Domain
	DomainChange      = wire.DomainChange
	DomainPosture     = wire.DomainPosture
	DomainResult      = wire.DomainResult
	Event             = wire.Event
	ExportedRecord    = wire.ExportedRecord
	Finding           = wire.Finding
	Forwarding        = wire.Forwarding
	FullReport        = wire.FullReport
	Hit               = wire.Hit
	Invitation        = wire.Invitation
	Mailbox           = wire.Mailbox
	ManagedRecord     = wire.ManagedRecord
	Me                = wire.Me
	Member            = wire.Member
	Mute              = wire.Mute
	Parked            = wire.Parked
	QuietHours        = wire.QuietHours
	Receipts          = wire.Receipts
	Record            = wire.StoredRecord
	RecordProposal    = wire.RecordProposal
	RecordTarget      = wire.RecordTarget
	RecordVersion     = wire.RecordVersion
	Rejected          = wire.Rejected
	Report            = wire.StoredReport
	Retention         = wire.Retention
	SelfTest          = wire.SelfTest
	SentInvitation    = wire.SentInvitation
	Sender            = wire.Sender
	SenderClass       = wire.SenderClass
	Setup             = wire.Setup
	SetupRecord       = wire.SetupRecord
	SimulatedSender   = wire.SimulatedSender
	Simulation        = wire.Simulation
	Step              = wire.Step
	Summary           = wire.Summary
	Tag               = wire.Tag
	TeamSender        = wire.TeamSender
	Token             = wire.Token
	TokenWithSecret   = wire.TokenWithSecret
	Webhook           = wire.Webhook
	WebhookDelivery   = wire.WebhookDelivery
	WebhookMessage    = wire.WebhookMessage
	WebhookWithSecret = wire.WebhookWithSecret
)
