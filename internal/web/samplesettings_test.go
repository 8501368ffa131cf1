package web_test

import (
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
)

func sampleTokens() []dmarcd.Token {
	return []dmarcd.Token{
		{ID: 1, Name: "nightly export", Scope: dmarcd.ScopeRead, CreatedAt: now.AddDate(0, -2, 0), UsedAt: now.Add(-time.Minute), ExpiresAt: now.AddDate(0, 1, 0)},
		{ID: 2, Name: hostile, Scope: dmarcd.ScopeWrite, CreatedAt: now.AddDate(0, -6, 0), RevokedAt: now.AddDate(0, -1, 0)},
		{ID: 3, Name: "old script", Scope: dmarcd.ScopeWrite, CreatedAt: now.AddDate(-1, 0, 0), ExpiresAt: now.AddDate(0, -1, 0)},
	}
}

func sampleMembers() []web.Member {
	return []web.Member{
		{ID: "user_1", Name: "Ada Example", Email: "ada@example.com", Role: "owner", JoinedAt: now.AddDate(-1, 0, 0), SignedInAt: now.Add(-time.Hour)},
		{ID: "user_2", Name: hostile, Email: "bob@example.com", Role: "viewer", JoinedAt: now.AddDate(0, -1, 0)},
	}
}

func sampleInvites() []web.Invite {
	return []web.Invite{
		{Role: "owner", By: "command line", ExpiresAt: now.AddDate(0, 0, 1)},
		{Email: "new@example.com", Role: "editor", By: "ada@example.com", ExpiresAt: now.AddDate(0, 0, 6)},
		{Email: "other@example.com", Role: "viewer", By: hostile, ExpiresAt: now.AddDate(0, 0, 7)},
	}
}

func sampleProfile() web.Profile {
	return web.Profile{Name: hostile, Email: "ada@example.com", Password: true, Sessions: []web.SignedIn{
		{
			ID: "session_1", UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", Address: "192.0.2.99",
			SignedInAt: now.AddDate(0, 0, -1), SeenAt: now, Here: true,
		},
		{ID: "session_2", UserAgent: hostile, Address: "2001:db8::99", SignedInAt: now.AddDate(0, 0, -9), SeenAt: now.Add(-time.Hour)},
		{ID: "session_3", Address: "192.0.2.98", SignedInAt: now.AddDate(0, 0, -12), SeenAt: now.Add(-11 * time.Hour)},
	}}
}

func sampleMailboxes() []web.Mailbox {
	return []web.Mailbox{
		{ID: "box_1", Host: "imap.example.com:993", Username: "dmarc@example.com", Folder: "INBOX", SeenAt: now.Add(-time.Minute)},
		{ID: "box_2", Host: "imap.example.net:993", Username: hostile, Folder: "Reports", SeenAt: now.AddDate(0, 0, -1), Error: "The server refused the password.", ErrorAt: now},
		{ID: "box_4", Host: "imap.example.net:993", Username: "crash@example.net", Folder: "INBOX", Error: "Paused: reading this mailbox caused an internal error twice.", ErrorAt: now, PausedAt: now},
		{ID: "box_3", Host: "imap.example.org:993", Username: "new@example.org", Folder: "INBOX"},
	}
}

func sampleAudit() []web.AuditEntry {
	return []web.AuditEntry{
		{At: now.Add(-time.Hour), Actor: "ada@example.com", Action: "token.create", Target: "nightly export", Detail: "scope read", Address: "192.0.2.99"},
		{At: now.AddDate(0, 0, -1), Actor: hostile, Action: "of.tomorrow", Target: hostile, Address: "2001:db8::99"},
	}
}

func sampleTeams() []web.TeamRow {
	return []web.TeamRow{
		{ID: "team_1", Name: "Example & Sons", API: true, Domains: 128, Members: 4, Messages: 1234567, Stored: 3 << 30, StoredQuota: 10 << 30, CreatedAt: now.AddDate(-1, 0, 0)},
		{ID: otherTeam, Name: hostile, Domains: 3, Members: 1, Messages: 98, CreatedAt: now.AddDate(0, -2, 0)},
	}
}

func sampleUsers() []web.UserRow {
	return []web.UserRow{
		{ID: "user_1", Name: "Ada Example", Email: "ada@example.com", Operator: true, Teams: []web.Fact{{Name: "Example & Sons", Value: "owner"}}, CreatedAt: now.AddDate(-1, 0, 0), SignedInAt: now},
		{ID: "user_2", Name: hostile, Email: "bob@example.com", CreatedAt: now.AddDate(0, -1, 0)},
	}
}
