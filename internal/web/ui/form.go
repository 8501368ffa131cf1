package ui

import (
	"errors"
	"net/url"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// Form is a form with its fields and errors.
type Form struct {
	// Path receives the form. Method is "get" for filters, "post" for changes.
	Path, Method string
	Fields       []Field
	Submit       string
	// Danger means that what the form does cannot be undone.
	Danger bool
	// Error concerns the form as a whole.
	Error string
	// Inline shows the fields side by side.
	Inline bool
}

// Deletion returns a form that asks for the name of the thing to delete, which cannot be restored.
func Deletion(path, thing, name string) Form {
	return Form{Path: path, Method: "post", Submit: "Delete " + thing, Danger: true, Fields: []Field{
		{Name: "confirm", Label: "Enter " + name + " to confirm", Type: "text", Autocomplete: "off", Required: true},
	}}
}

// Field is a field of a form.
type Field struct {
	Name, Label string
	// Type is an HTML input type, "select", or "checks" for a group of boxes. Several groups may
	// have one name.
	Type        string
	Value, Hint string
	// Placeholder is an example of an answer.
	Placeholder string
	Error       string
	// Autocomplete is the HTML attribute.
	Autocomplete string
	Required     bool
	MinLength    int
	Choices      []Choice
	// Checked is for checkboxes, whose value is "yes".
	Checked bool
}

// Choice is an option of a select field, or a box of a group with a line that explains it.
type Choice struct {
	Value, Label string
	Hint         string
	Checked      bool
}

// Filled returns the form with the user's input, except passwords, and with the error at
// its field. It reports false if the error does not concern the input.
func (f Form) Filled(written url.Values, err error) (Form, bool) {
	var invalid *dmarcd.InvalidError
	if !errors.As(err, &invalid) {
		return f, false
	}
	fields := make([]Field, len(f.Fields))
	shown := false
	for i, field := range f.Fields {
		switch field.Type {
		case "password", "passkey":
		case "checks":
			field.Choices = slices.Clone(field.Choices)
			for n, choice := range field.Choices {
				field.Choices[n].Checked = slices.Contains(written[field.Name], choice.Value)
			}
		default:
			field.Value = written.Get(field.Name)
			field.Checked = field.Value != ""
		}
		if field.Name == invalid.Field && !shown {
			field.Error, shown = invalid.Message, true
		}
		fields[i] = field
	}
	f.Fields = fields
	if !shown {
		f.Error = invalid.Message
	}
	return f, true
}

// Choices returns options whose labels equal their values.
func Choices[S ~string](all ...S) []Choice {
	list := make([]Choice, len(all))
	for i, s := range all {
		list[i] = Choice{Value: string(s), Label: string(s)}
	}
	return list
}
