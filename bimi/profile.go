package bimi

import "slices"

// The namespaces of elements and attributes.
const (
	svgNamespace   = "http://www.w3.org/2000/svg"
	xlinkNamespace = "http://www.w3.org/1999/xlink"
)

// The names of elements and attributes that have rules of their own.
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

// elementKind returns what is wrong with an element of the SVG namespace below the
// root, "" where it is part of the profile.
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
