package web

import "strings"

// browsers and systems are told by words that browsers put into what they call
// themselves. The order counts: most of them also say what they are compatible with.
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

// browserName says what a browser is by the header User-Agent, for a user who
// looks for their own. It is the header itself where that says nothing known.
func browserName(userAgent string) string {
	browser, system := firstWord(browsers, userAgent), firstWord(systems, userAgent)
	switch {
	case userAgent == "":
		return "a program that does not say its name"
	case browser == "":
		return userAgent
	case system == "":
		return browser
	}
	return browser + " on " + system
}

// firstWord returns the name of the first word that the text holds, or "".
func firstWord(words [][2]string, text string) string {
	for _, word := range words {
		if strings.Contains(text, word[0]) {
			return word[1]
		}
	}
	return ""
}
