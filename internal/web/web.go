// Package web serves the web interface under /app/: domains, checks, reports and
// settings. Pages are rendered on the server and work without scripts. Every chart is
// also a table, and every table is available as CSV.
//
// Routes are in routes.go. Each page, or small family of pages, has a file with its handlers
// and views, and templates of the same name; the data comes from package service. Package site
// has what all pages share. The caller provides request ids, the access log and panic recovery,
// as with package api.
package web

import (
	"embed"
	"html/template"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/recordfile"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/upload"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// Prefix is the path prefix of all pages.
const Prefix = site.Prefix

// Options configure the web interface.
type Options struct {
	Service *service.Service
	// ReportDomain is the domain of the reporting addresses, "" if there is none.
	ReportDomain string
	// Zone is the zone of the managed records, "" if there is none.
	Zone string
	// MinPassword is the minimum length of a password, in characters.
	MinPassword int
	// APIDocs is the URL of the API documentation.
	APIDocs string
	// Attributions link to the sources of the network data.
	Attributions []ui.Link
	// SecureCookies is true if clients only use https.
	SecureCookies bool
	// MaxUpload limits an uploaded file, in bytes. Uploads limits concurrent uploads; nil
	// creates a new limiter.
	MaxUpload int64
	Uploads   *upload.Gate
	Now       func() time.Time
	Log       *slog.Logger
}

// Web is an http.Handler for paths below Prefix.
type Web struct {
	*site.Site
	options Options
}

// New returns the web interface. It fails only if a built-in asset or template is invalid.
func New(options Options) (*Web, error) {
	files, err := loadFiles()
	if err != nil {
		return nil, err
	}
	if options.Uploads == nil {
		options.Uploads = upload.NewGate(upload.DefaultLimits())
	}
	w := &Web{options: options}
	w.Site = site.New(site.Options{
		Service: options.Service, Files: files, Navigation: navigation, PersonMenu: slices.Concat(settingsMenu, personMenu), Done: doneMessage, APIDocs: options.APIDocs,
		Attributions: options.Attributions, SecureCookies: options.SecureCookies, Log: options.Log,
	}, w.routes())
	return w, nil
}

// builtIn has the files that site.Load describes. The folder built always has a file, so that
// the program builds without the output of scripts/build-assets.sh.
//
//go:embed templates assets all:built
var builtIn embed.FS

// loadFiles loads the built-in files, once per process: they never change.
var loadFiles = sync.OnceValues(func() (*site.Files, error) {
	return site.Load(builtIn, template.FuncMap{
		"eventCell":     eventCell,
		"eventDiff":     eventDiff,
		"eventText":     phrase.Event,
		"figures":       figures,
		"zoneLine":      newZoneLine,
		"dnsRecord":     newRecord,
		"recordFormats": recordfile.Formats,
		"verified":      verifiedCell,
		"arrival":       arrival,
	})
})

// navigation is the main menu.
var navigation = []site.MenuEntry{
	{Title: "Overview", Path: "/", Icon: "overview", Access: site.AccessView, Carries: true},
	{Title: "Domains", Path: "/domains", Icon: "domains", Access: site.AccessView, Carries: true},
	{Title: "Senders", Path: "/senders", Icon: "senders", Access: site.AccessView, Carries: true},
	{Title: "Activity", Path: "/activity", Icon: "activity", Access: site.AccessView, Carries: true},
	{Title: "Reports", Path: "/reports", Icon: "reports", Access: site.AccessView, Carries: true},
	{Title: "Tools", Path: "/tools", Icon: "tools", Access: site.AccessView},
}

// personMenu is the menu of the user, after the team settings.
var personMenu = []site.MenuEntry{
	{Title: "Your account", Path: "/account", Icon: "person", Access: site.AccessSignedIn},
	{Title: "Installation", Path: "/installation/teams", Icon: "installation", Access: site.AccessOperate},
}
