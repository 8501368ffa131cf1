package web

import (
	"net/url"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// adviceView is the conclusion about a domain and the way to reject.
type adviceView struct {
	*dmarcd.Advice
	// Way are the steps with what the viewer can do about them.
	Way []stepView
	// Policy is the simulation of p=reject, Print the printable report.
	Policy, Print string
}

// stepView is a step on the way to reject.
type stepView struct {
	dmarcd.Step
	// Mark and Word show how far the step is.
	Mark, Word string
	// Effect says what the figures of Effects are; "" if the step has none.
	Effect  string
	Effects []figure
	// Buttons are for editors, Links for all.
	Buttons []ui.Action
	Links   []ui.Link
}

func (c *call) adviceView(advice *dmarcd.Advice) adviceView {
	path := domainPath(advice.Domain)
	view := adviceView{Advice: advice, Policy: c.link(path+"/policy", "p", "reject"), Print: c.link(path + "/print")}
	for _, step := range advice.Steps {
		view.Way = append(view.Way, c.stepView(advice, step))
	}
	return view
}

func (c *call) stepView(advice *dmarcd.Advice, step dmarcd.Step) stepView {
	view := stepView{Step: step}
	switch step.State {
	case dmarcd.StepDone:
		view.Mark, view.Word = "✓", "Done"
		return view
	case dmarcd.StepLater:
		view.Mark, view.Word = "○", "Later"
		return view
	}
	view.Mark, view.Word = "→", "Now"
	view.addEffect(advice.Stage)
	path := domainPath(advice.Domain)
	link := func(text, href string) { view.Links = append(view.Links, ui.Link{Text: text, Href: href}) }
	button := func(label, path, name, value string) {
		if c.viewer.MayEdit() {
			view.Buttons = append(view.Buttons, ui.Action{Label: label, Path: c.link(path), Name: name, Value: value})
		}
	}
	switch step.ID {
	case dmarcd.ActionCheck:
		button("Check now", path+"/dns", "", "")
	case dmarcd.ActionPublish, dmarcd.ActionRepair, dmarcd.ActionReports:
		link("Open the setup guide", c.link(path+"/setup"))
	case dmarcd.ActionAnswer:
		button("Yes, ours", path+"/questions/"+url.PathEscape(step.Question.Key), "answer", answerYours)
		button("No, not ours", path+"/questions/"+url.PathEscape(step.Question.Key), "answer", answerNotYours)
	case dmarcd.ActionAccept:
		button("Accept "+dmarcd.FormatCount(step.ForwarderAffected, "message"), path+"/forwarding", "accepted", strconv.FormatInt(step.ForwarderAffected, 10))
		link("See the forwarders", c.link(path+"/senders", "class", string(dmarcd.ClassForwarder)))
	case dmarcd.ActionTighten, dmarcd.ActionLock:
		if record, ok := dmarc.Parse(step.Record.Value); ok {
			link("Try it", c.link(path+"/policy", "p", record.P.String()))
		}
	}
	if step.Sender != "" {
		asked := c.web.sourceQuery(c.r.URL.Query(), advice.Domain)
		asked.Group = insight.GroupNetwork
		link("See the sender", sourcePath(asked, step.Sender))
	}
	return view
}

// addEffect adds the effect of the policy that the step is about.
func (v *stepView) addEffect(stage dmarcd.Stage) {
	switch v.ID {
	case dmarcd.ActionTighten, dmarcd.ActionLock:
		v.Effect = "Rejected, of the mail of 30 days"
		if record, _ := dmarc.Parse(v.Record.Value); record.Applied(record.P) != dmarc.Reject {
			v.Effect = "To the spam folder, of the mail of 30 days"
		}
	case dmarcd.ActionFix, dmarcd.ActionAnswer, dmarcd.ActionAccept:
		v.Effect = "Affected by the next policy, of the mail of 30 days"
		if stage == dmarcd.StageEnforced {
			v.Effect = "Affected by the policy, of the mail of 30 days"
		}
	default:
		return
	}
	v.Effects = []figure{
		{Name: "Yours", Value: dmarcd.FormatNumber(v.LegitimateAffected)},
		{Name: "Forwarded", Value: dmarcd.FormatNumber(v.ForwarderAffected)},
		{Name: "Unknown", Value: dmarcd.FormatNumber(v.UnknownAffected)},
		{Name: "Spoofed", Value: dmarcd.FormatNumber(v.SpoofingStopped)},
	}
}

// Progress says how many steps are done.
func (a adviceView) Progress() string {
	done := 0
	for _, step := range a.Steps {
		if step.State == dmarcd.StepDone {
			done++
		}
	}
	return strconv.Itoa(done) + " of " + dmarcd.FormatCount(int64(len(a.Steps)), "step") + " done (" + strconv.Itoa(a.Done()) + " %)"
}

// PolicyText is the text of the link to the simulation.
func (a adviceView) PolicyText() string {
	if a.Stage == dmarcd.StageEnforced || a.Stage == dmarcd.StageParked {
		return "Simulate a policy"
	}
	return "What would p=reject do?"
}

// stageBadges are the name and the color of stages.
var stageBadges = map[dmarcd.Stage][2]string{
	dmarcd.StageNone:       {"no record", "bad"},
	dmarcd.StageMonitoring: {"monitoring", "warning"},
	dmarcd.StagePartial:    {"partly enforced", "warning"},
	dmarcd.StageEnforced:   {"enforced", "good"},
	dmarcd.StageParked:     {"parked", "good"},
}

// StageBadge is the name of the stage.
func (a adviceView) StageBadge() ui.Cell {
	next, badge := a.Next(), stageBadges[a.Stage]
	switch {
	case next == nil:
	case next.ID == dmarcd.ActionCheck && a.Stage == dmarcd.StageNone:
		badge = [2]string{"not known", "info"}
	case badge[1] == "good":
		badge[1] = "warning"
	}
	return ui.Cell{Kind: ui.CellBadge, Text: badge[0], Tone: badge[1]}
}

// The answers to a question, as in the API.
const (
	answerYours    = "yours"
	answerNotYours = "not_yours"
)

// answer answers whether a sender sends on behalf of the owner of the domain.
func (s *Web) answer(c *call, domain dmarcd.Domain, form url.Values) error {
	answer := form.Get("answer")
	if answer != answerYours && answer != answerNotYours {
		return errBadForm
	}
	if _, err := c.team.Answer(c.r.Context(), domain.Name, c.params.Get("sender"), answer == answerYours); err != nil {
		return err
	}
	return c.redirect(c.link(domainPath(domain.Name), "done", "answered-"+answer))
}

// acceptForwarding stores how many forwarded messages a policy may affect.
func (s *Web) acceptForwarding(c *call, domain dmarcd.Domain, form url.Values) error {
	accepted, err := strconv.ParseInt(form.Get("accepted"), 10, 64)
	if err != nil {
		return errBadForm
	}
	if err := c.team.AcceptForwarding(c.r.Context(), domain.Name, accepted); err != nil {
		return err
	}
	return c.redirect(c.link(domainPath(domain.Name), "done", "forwarding-accepted"))
}
