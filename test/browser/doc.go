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
// drawn into files; make screenshots does that.
package browser
