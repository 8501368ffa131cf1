package phrase

import "strings"

// browsers and systems are identified by words in the User-Agent. The order matters: most
// browsers also contain the names of others.
var (
	browsers = [][2]string{
		{"Edg", "Edge"},
		{"OPR/", "Opera"},
		{"Firefox/", "Firefox"},
		{"FxiOS/", "Firefox"},
		{"Chrome/", "Chrome"},
		{"CriOS/", "Chrome"},
		{"Safari/", "Safari"},
	}
	systems = [][2]string{
		{"Android", "Android"},
		{"iPhone", "iPhone"},
		{"iPad", "iPad"},
		{"Windows", "Windows"},
		{"CrOS", "ChromeOS"},
		{"Mac OS X", "macOS"},
		{"Linux", "Linux"},
	}
)

// Browser returns a readable name for a User-Agent, so that users recognize their own
// sessions, or the header itself if it is unknown.
func Browser(userAgent string) string {
	browser, system := firstWord(browsers, userAgent), firstWord(systems, userAgent)
	switch {
	case userAgent == "":
		return "unknown browser"
	case browser == "":
		return userAgent
	case system == "":
		return browser
	}
	return browser + " on " + system
}

// firstWord returns the name of the first matching word, or "".
func firstWord(words [][2]string, text string) string {
	for _, word := range words {
		if strings.Contains(text, word[0]) {
			return word[1]
		}
	}
	return ""
}
