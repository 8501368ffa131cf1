package ui

import (
	"regexp"
	"strings"

	"golang.org/x/net/idna"
)

// aLabels matches domain names with an A-label in them.
var aLabels = regexp.MustCompile(`(?i)(?:[a-z0-9_-]+\.)*xn--[a-z0-9-]+(?:\.[a-z0-9_-]+)*`)

// Names returns a text in which internationalized domain names are in Unicode, with their
// A-labels beside them: "bücher.example (xn--bcher-kva.example)". Labels that are not valid
// stay as they are.
func Names(text string) string {
	return aLabels.ReplaceAllStringFunc(text, func(name string) string {
		labels := strings.Split(name, ".")
		for i, label := range labels {
			if unicode, err := idna.Display.ToUnicode(label); err == nil {
				labels[i] = unicode
			}
		}
		if shown := strings.Join(labels, "."); shown != strings.ToLower(name) && shown != name {
			return shown + " (" + name + ")"
		}
		return name
	})
}
