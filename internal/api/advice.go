package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// changeDomain changes the domain in the path and responds with the result. The body was read.
func changeDomain(c *call, body *object, change func(domain string) (result any, err error)) error {
	if body.err != nil {
		return body.err
	}
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	result, err := change(domain.Name)
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeJSON(http.StatusOK, result)
}

// changeSender is changeDomain for the class of the sender in the path.
func changeSender(c *call, body *object, change func(domain, key string) (dmarcd.Class, error)) error {
	key, err := dmarcd.ParseSenderKey(c.params.Get("key"))
	body.accept("key", err)
	return changeDomain(c, body, func(domain string) (any, error) {
		class, err := change(domain, key)
		return wire.NewSenderClass(domain, key, class), err
	})
}

// setSenderClass sets the class of a sender for a domain.
func (a *API) setSenderClass(c *call) error {
	body := readObject(c, "class", `{"class": "yours"}`)
	if !body.has("class") {
		body.reject("class", `The member "class" is required: yours, forwarder, unknown, spoofing or null.`)
	}
	var class dmarcd.Class
	if body.states("class") {
		var err error
		class, err = dmarcd.ParseSenderClass(body.text("class"))
		body.accept("class", err)
	}
	return changeSender(c, body, func(domain, key string) (dmarcd.Class, error) {
		return class, c.service.SetSenderClass(c.r.Context(), domain, key, class)
	})
}

// answerQuestion answers whether a sender sends on behalf of the owner of a domain.
func (a *API) answerQuestion(c *call) error {
	body := readObject(c, "answer", `{"answer": "yours"}`)
	answer := body.text("answer")
	if answer != "yours" && answer != "not_yours" {
		body.reject("answer", "The answer must be yours or not_yours.")
	}
	return changeSender(c, body, func(domain, key string) (dmarcd.Class, error) {
		return c.service.Answer(c.r.Context(), domain, key, answer == "yours")
	})
}

// setParked marks a domain as not used for mail, or removes the mark.
func (a *API) setParked(c *call) error {
	body := readObject(c, "parked", `{"parked": true}`)
	parked := body.flag("parked")
	return changeDomain(c, body, func(domain string) (any, error) {
		return wire.Parked{Domain: domain, Parked: parked}, c.service.SetParked(c.r.Context(), domain, parked)
	})
}

// acceptForwarding stores the number of affected forwarded messages that the team accepts.
func (a *API) acceptForwarding(c *call) error {
	body := readObject(c, "accepted", `{"accepted": 250}`)
	if !body.has("accepted") {
		body.reject("accepted", `The member "accepted" is required: a number of messages, or null.`)
	}
	var shown *int64
	var accepted int64
	if body.states("accepted") {
		shown = &accepted
		if accepted = body.number("accepted"); accepted == 0 {
			body.reject("accepted", "The number of accepted messages must be a whole number of at least 1, or null.")
		}
	}
	return changeDomain(c, body, func(domain string) (any, error) {
		return wire.Forwarding{Domain: domain, Accepted: shown}, c.service.AcceptForwarding(c.r.Context(), domain, accepted)
	})
}

// simulate applies a policy to past mail.
func (a *API) simulate(c *call) error {
	days, change := c.query.days(), readPolicy(c.query)
	if c.query.Get("domain") == "" {
		c.query.reject("domain", "The parameter domain is required.")
	}
	name := c.query.domain()
	if c.query.err != nil {
		return c.query.err
	}
	s, err := c.service.Simulate(c.r.Context(), name, days, change)
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeCacheable(wire.NewSimulation(s.Result()))
}

// readPolicy returns the policy changes of the query.
func readPolicy(q *query) service.PolicyChange {
	policies, modes := []dmarc.Policy{dmarc.None, dmarc.Quarantine, dmarc.Reject}, []dmarc.Mode{dmarc.Relaxed, dmarc.Strict}
	return service.PolicyChange{
		P: choice(q, "p", policies), SP: choice(q, "sp", policies), NP: choice(q, "np", policies),
		ADKIM: choice(q, "adkim", modes), ASPF: choice(q, "aspf", modes),
	}
}

// choice returns the value that a parameter names, nil if it is absent.
func choice[T fmt.Stringer](q *query, name string, values []T) *T {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = value.String()
	}
	if i := slices.Index(words, word(q, name, words...)); i >= 0 {
		return &values[i]
	}
	return nil
}

// defaultAdvice is the default page size.
const defaultAdvice = 25

// listAdvice returns the next action of one or all domains, most urgent first.
func (a *API) listAdvice(c *call) error {
	limit, name, file := c.query.limit(defaultAdvice), c.query.domain(), c.query.file()
	if file.asked && !c.query.Has("domain") {
		c.query.reject("format", "The parameter format needs the parameter domain.")
	}
	if c.query.err != nil {
		return c.query.err
	}
	page := wire.Page[wire.Advice]{Items: []wire.Advice{}}
	if c.query.Has("domain") {
		advice, err := c.service.Advice(c.r.Context(), name)
		if err != nil {
			return missing(err, errNoSuchDomain)
		}
		if file.asked {
			return c.writeFile(file, advice.Domain, advice.DNSRecords())
		}
		page.Items = append(page.Items, wire.NewAdvice(advice))
		return c.writeCacheable(page)
	}
	offset := 0
	if _, after := c.query.part(); after != "" {
		var err error
		if offset, err = strconv.Atoi(after); err != nil || offset < 0 {
			c.query.fail("after", wire.ErrAfter)
		}
	}
	team := tagged(c)
	if c.query.err != nil {
		return c.query.err
	}
	all, more, err := team.AllAdvice(c.r.Context(), offset, limit)
	if err != nil {
		return err
	}
	for _, advice := range all {
		page.Items = append(page.Items, wire.NewAdvice(advice))
	}
	if more {
		page.Next = new(strconv.Itoa(offset + limit))
	}
	return writePage(c, page)
}
