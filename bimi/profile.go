package bimi

import "slices"

// The XML namespaces.
const (
	svgNamespace   = "http://www.w3.org/2000/svg"
	xlinkNamespace = "http://www.w3.org/1999/xlink"
)

// Elements and attributes with special rules.
const (
	elementSVG   = "svg"
	elementTitle = "title"
)

// allowedElements are the elements of SVG Tiny Portable/Secure below the root.
var allowedElements = []string{
	elementTitle, "desc", "metadata", "defs", "g", "use",
	"path", "rect", "circle", "ellipse", "line", "polyline", "polygon",
	"text", "textArea", "tspan", "tbreak",
	"linearGradient", "radialGradient", "stop", "solidColor",
	"font", "font-face", "glyph", "missing-glyph", "hkern",
}

// scriptElements run code (SVG Tiny 1.2 §15).
var scriptElements = []string{"script", "handler", "listener"}

// animationElements change the image over time (SVG Tiny 1.2 §16).
var animationElements = []string{
	"animate", "animateColor", "animateMotion", "animateTransform", "animation", "discard", "mpath", "set",
}

// elementKind returns the problem with an SVG element below the root, "" if it is part of
// the profile.
func elementKind(name string) Kind {
	switch {
	case slices.Contains(allowedElements, name):
		return ""
	case slices.Contains(scriptElements, name):
		return Script
	case slices.Contains(animationElements, name):
		return Animation
	default:
		return DisallowedElement
	}
}
