package web

import (
	"net/url"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// adviceView is the conclusion about a domain and the way to reject.
type adviceView struct {
	*dmarcd.Advice
	// Way are the steps with what the viewer can do about them.
	Way []stepView
	// Policy is the simulation of p=reject.
	Policy string
}

// stepView is a step on the way to reject.
type stepView struct {
	dmarcd.Step
	// Mark and Word show how far the step is.
	Mark, Word string
	// Effect says what the step changes for the mail of 30 days, "" if it changes nothing.
	Effect string
	// Buttons are for editors, Links for all.
	Buttons []ui.Action
	Links   []ui.Link
	// Managed means that Record is managed here. Publish is the page that publishes it, "" for viewers.
	Managed bool
	Publish string
}

func (s *Web) newAdviceView(c *site.Call, advice *dmarcd.Advice) adviceView {
	path := domainPath(advice.Domain)
	view := adviceView{Advice: advice, Policy: c.Link(path+"/policy", "p", "reject")}
	for _, step := range advice.Steps {
		view.Way = append(view.Way, s.newStepView(c, advice, step))
	}
	return view
}

func (s *Web) newStepView(c *site.Call, advice *dmarcd.Advice, step dmarcd.Step) stepView {
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
	view.Effect = effect(&step, advice.Stage)
	path := domainPath(advice.Domain)
	link := func(text, href string) { view.Links = append(view.Links, ui.Link{Text: text, Href: href}) }
	button := func(label, path, name, value string) {
		if c.Viewer.MayEdit() {
			view.Buttons = append(view.Buttons, ui.Action{Label: label, Path: c.Link(path), Name: name, Value: value})
		}
	}
	switch step.ID {
	case dmarcd.ActionCheck:
		button("Check now", path+"/dns", "", "")
	case dmarcd.ActionPublish, dmarcd.ActionRepair, dmarcd.ActionReports:
		link("Open the setup guide", c.Link(path+"/setup"))
	case dmarcd.ActionAnswer:
		button("Yes, ours", path+"/questions/"+url.PathEscape(step.Question.Key), "answer", answerYours)
		button("No, not ours", path+"/questions/"+url.PathEscape(step.Question.Key), "answer", answerNotYours)
	case dmarcd.ActionAccept:
		button("Accept "+phrase.Count(step.ForwarderAffected, "message"), path+"/forwarding", "accepted", strconv.FormatInt(step.ForwarderAffected, 10))
		link("See the forwarders", c.Link(path+"/senders", "class", string(dmarcd.ClassForwarder)))
	case dmarcd.ActionTighten, dmarcd.ActionLock:
		if record, ok := dmarc.Parse(step.Record.Value); ok {
			link("Try it", c.Link(path+"/policy", "p", record.P.String()))
		}
	}
	if step.Sender != "" {
		asked := s.senderQuery(c.R.URL.Query(), advice.Domain)
		asked.Group = insight.GroupSender
		link("See the sender", senderPath(asked, step.Sender))
	}
	return view
}

// effect says how many messages of 30 days a policy affects, and how.
func effect(step *dmarcd.Step, stage dmarcd.Stage) string {
	does, into := "it would have rejected", ""
	switch step.ID {
	case dmarcd.ActionTighten, dmarcd.ActionLock:
		if record, _ := dmarc.Parse(step.Record.Value); record.Applied(record.P) != dmarc.Reject {
			does, into = "it would have put", " into the spam folder"
		}
	case dmarcd.ActionFix, dmarcd.ActionAnswer:
		does = "the next policy would have affected"
		if stage == dmarcd.StageEnforced {
			does = "the policy affected"
		}
	default:
		return ""
	}
	return "In 30 days, " + does + " " + phrase.Number(step.LegitimateAffected) + " of yours, " + phrase.Number(step.ForwarderAffected) + " forwarded, " +
		phrase.Number(step.UnknownAffected) + " unknown and " + phrase.Count(step.SpoofingStopped, "spoofed message") + into
}

// Progress says how many steps are done.
func (a adviceView) Progress() string {
	done := 0
	for _, step := range a.Steps {
		if step.State == dmarcd.StepDone {
			done++
		}
	}
	return strconv.Itoa(done) + " of " + phrase.Count(int64(len(a.Steps)), "step") + " done (" + strconv.Itoa(a.Done()) + " %)"
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
	var next dmarcd.ActionID
	if action := a.Next(); action != nil {
		next = action.ID
	}
	return stageBadge(a.Stage, next)
}

// stageBadge is the name of a stage with the next action, "" for none.
func stageBadge(stage dmarcd.Stage, next dmarcd.ActionID) ui.Cell {
	badge := stageBadges[stage]
	switch {
	case next == "":
	case next == dmarcd.ActionCheck && stage == dmarcd.StageNone:
		badge = [2]string{"not known", "info"}
	}
	return ui.Cell{Kind: ui.CellBadge, Text: badge[0], Tone: badge[1]}
}

// The answers to a question, as in the API.
const (
	answerYours    = "yours"
	answerNotYours = "not_yours"
)

// answer answers whether a sender sends on behalf of the owner of the domain.
func (s *Web) answer(c *site.Call, domain dmarcd.Domain, form url.Values) error {
	answer := form.Get("answer")
	if answer != answerYours && answer != answerNotYours {
		return site.ErrBadForm
	}
	if _, err := c.Team.Answer(c.R.Context(), domain.Name, c.Params.Get("sender"), answer == answerYours); err != nil {
		return err
	}
	return c.Redirect(c.Link(domainPath(domain.Name), "done", "answered-"+answer))
}

// acceptForwarding stores how many forwarded messages a policy may affect.
func (s *Web) acceptForwarding(c *site.Call, domain dmarcd.Domain, form url.Values) error {
	accepted, err := strconv.ParseInt(form.Get("accepted"), 10, 64)
	if err != nil {
		return site.ErrBadForm
	}
	if err := c.Team.AcceptForwarding(c.R.Context(), domain.Name, accepted); err != nil {
		return err
	}
	return c.Redirect(c.Link(domainPath(domain.Name), "done", "forwarding-accepted"))
}
