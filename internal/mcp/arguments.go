package mcp

import (
	"cmp"
	"context"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	// maxText limits a text in the arguments, in characters.
	maxText = 2000
	// maxPage limits the size of a page, defaultPage is the default.
	maxPage     = 100
	defaultPage = 25
)

// Types of arguments whose values schemas limits.
type (
	day             string
	rows            int
	policy          string
	publishedPolicy string
	stage           string
	class           string
)

// The arguments that several tools have.
type (
	named struct {
		Domain string `json:"domain" jsonschema:"a domain of the team, such as example.com"`
	}
	anyDomain struct {
		Domain string `json:"domain,omitempty" jsonschema:"only this domain of the team; all if absent"`
	}
	period struct {
		From day `json:"from,omitempty" jsonschema:"the first day, YYYY-MM-DD in UTC"`
		To   day `json:"to,omitempty" jsonschema:"the last day, YYYY-MM-DD in UTC"`
	}
	paged struct {
		Limit rows   `json:"limit,omitempty" jsonschema:"at most so many items, 25 if absent"`
		After string `json:"after,omitempty" jsonschema:"the member next of the page before"`
	}
)

// filtered are the arguments of a list ordered by time.
type filtered struct {
	anyDomain
	period
	paged
}

// read returns the domain as it is stored, "" for all, the days and the position in the list.
func (f filtered) read(ctx context.Context, team *service.Team) (name string, days dmarcd.Days, after service.Cursor, err error) {
	name, err = f.name(ctx, team)
	days, wrong := f.days()
	after, unknown := f.cursor()
	return name, days, after, cmp.Or(err, wrong, unknown)
}

// name returns the domain as it is stored, "" for all.
func (a anyDomain) name(ctx context.Context, team *service.Team) (string, error) {
	if a.Domain == "" {
		return "", nil
	}
	domain, err := team.Domain(ctx, a.Domain)
	return domain.Name, err
}

func (p period) days() (days dmarcd.Days, err error) {
	for _, end := range []struct {
		text day
		day  **dmarcd.Day
	}{{p.From, &days.From}, {p.To, &days.To}} {
		if end.text == "" {
			continue
		}
		parsed, err := dmarcd.ParseDay(string(end.text))
		if err != nil {
			return days, err
		}
		*end.day = &parsed
	}
	if days.From != nil && days.To != nil && *days.From > *days.To {
		return days, &dmarcd.InvalidError{Field: "from", Message: "The day from must not be later than to."}
	}
	return days, nil
}

func (p paged) limit() int { return cmp.Or(int(p.Limit), defaultPage) }

// cursor returns the position in a list ordered by time.
func (p paged) cursor() (after service.Cursor, err error) {
	if p.After != "" {
		after.At, after.ID, err = wire.ParseCursor(p.After)
	}
	return after, err
}

// page returns the items read, of which there is one more than limit if there is a next page.
func page[A, B any](read []A, limit int, position func(A) string, shape func(A) B) (answer, error) {
	return fittingAnswer(limit, func(limit int) (wire.Page[B], error) { return wire.NewPage(read, limit, position, shape), nil })
}

// parsed returns the policy, nil if it is absent.
func (p policy) parsed() *dmarc.Policy {
	for parsed := dmarc.None; parsed <= dmarc.Reject; parsed++ {
		if strings.EqualFold(parsed.String(), string(p)) {
			return &parsed
		}
	}
	return nil
}

// oneOf is the schema of a text with these values.
func oneOf[T ~string](words ...T) *jsonschema.Schema {
	schema := &jsonschema.Schema{Type: "string"}
	for _, word := range words {
		schema.Enum = append(schema.Enum, string(word))
	}
	return schema
}

// schemas are the schemas of the types of arguments.
func schemas() map[reflect.Type]*jsonschema.Schema {
	smallest, largest, longest := 1.0, float64(maxPage), maxText
	return map[reflect.Type]*jsonschema.Schema{
		// PostgreSQL stores no zero bytes.
		reflect.TypeFor[string]():            {Type: "string", MaxLength: &longest, Pattern: `^[^\x00]*$`},
		reflect.TypeFor[day]():               {Type: "string", Pattern: `^\d{4}-\d{2}-\d{2}$`},
		reflect.TypeFor[rows]():              {Type: "integer", Minimum: &smallest, Maximum: &largest},
		reflect.TypeFor[policy]():            oneOf[policy]("none", "quarantine", "reject"),
		reflect.TypeFor[publishedPolicy]():   oneOf[publishedPolicy]("none", "quarantine", "reject", "missing", "unknown"),
		reflect.TypeFor[stage]():             oneOf[stage]("none", "monitoring", "partial", "enforced", "parked", "unknown"),
		reflect.TypeFor[insight.Group]():     oneOf(insight.Groups()...),
		reflect.TypeFor[class]():             oneOf[class]("yours", "forwarder", "unknown", "spoofing", "automatic"),
		reflect.TypeFor[dmarcd.ReportKind](): oneOf(dmarcd.ReportKinds()...),
		reflect.TypeFor[dmarcd.EventKind]():  oneOf(dmarcd.EventKinds()...),
	}
}
