// Package browser holds the tests of the web page in a real browser. They build
// the real binary, start it with a database, a data folder and a DNS server of its
// own, and use it as people do, in Chromium. What needs no browser to be proven, such
// as who is refused what, is asked over plain HTTP beside it.
//
// One Chromium serves all tests; each person in a test has a profile of their own.
// Whatever a tab is used for, it is watched: a request to another host, an error in
// the console, a violation of the Content-Security-Policy, or a script that is not
// ours fails the test. axe checks every page, light, dark and as on a phone.
//
// scripts/need-browser.sh installs what the tests need. With -short nothing is started
// and nothing is tested. With -screenshots FOLDER the pages of the sample team are also
// drawn into files; make screenshots does that. With -every-screen FOLDER they are drawn on more
// screens, to look through before a release; make looks does that.
package browser_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/test/daemon"
)

var (
	// program is the path of the binary under test, which TestMain builds.
	program string
	// chromium is the context of the browser that all tests share.
	chromium context.Context
)

var (
	screenshots = flag.String("screenshots", "", "draw the pages of the sample team into this `folder`")
	everyScreen = flag.String("every-screen", "", "draw them at 1440, 768 and 360 pixels, light and dark, into this `folder`")
)

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

// parallelism is how many tests run at once: much of the time they wait for the
// browser and for each other's pages.
const parallelism = "4"

func buildAndRun(m *testing.M) int {
	flag.Parse()
	if testing.Short() {
		return 0 // what needs nothing but Go is tested elsewhere
	}
	folder, err := prepare()
	defer func() { _ = os.RemoveAll(folder) }() // a temporary folder
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	stop, err := startChromium(filepath.Join(folder, "profile"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	return m.Run()
}

// prepare builds the binary into a new folder.
func prepare() (folder string, err error) {
	if err := flag.Set("test.parallel", parallelism); err != nil {
		return "", err
	}
	if folder, err = os.MkdirTemp("", "dmarcd-browser-"); err != nil {
		return "", err
	}
	program, err = daemon.Build(folder)
	return folder, err
}

// startChromium starts the browser with a fresh profile. It can reach this machine
// alone: no other name is resolved. Where there is the build of Chromium without windows, it
// is used: it needs a fifth less processor time for the same pages.
func startChromium(profile string) (stop func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.UserDataDir(profile),
		chromedp.NoSandbox, // which does not work for root
		chromedp.WindowSize(wideWidth, wideHeight),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.Flag("lang", "en-US"),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Env("TZ=UTC", "LC_ALL=C.UTF-8"),
	)
	if shell, err := exec.LookPath("chromium-headless-shell"); err == nil {
		options = append(options, chromedp.ExecPath(shell))
	}
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	browser, endBrowser := chromedp.NewContext(allocator)
	stop = func() {
		endBrowser()
		endAllocator()
	}
	if err := chromedp.Do(browser); err != nil {
		stop()
		return nil, fmt.Errorf("start Chromium (scripts/need-browser.sh installs it): %w", err)
	}
	chromium = browser
	return stop, nil
}
