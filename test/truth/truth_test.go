// Package truth plants mail whose truth is known, and compares it with what the built daemon
// concludes from the reports about it.
//
// A Domain is generated from a seed and a number: DNS records, daily aggregate reports, marks of a
// user, and the truth by the rules of docs/senders.md: what a simulation of p=reject must show, and
// which action is next. The table of scenarios is in scenarios_test.go. The package imports
// nothing that concludes anything: a rule that is wrong in the product is not wrong here too.
package truth_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/test/truth"
)

var (
	seed    = flag.Uint64("seed", 1, "seed of the planted domains")
	domains = flag.Int("domains", 100, "number of planted domains")
	only    = flag.Int("only", -1, "plant only the domain with this number, and print all about it")
)

// What must be right.
const (
	goal = 0.98
	// share of the messages of a domain, or messages, by which a figure may be wrong
	tolerance, toleratedMessages = 0.02, 5
	// harmless is the share of legitimate mail that a stricter policy may affect.
	harmless = 0.005
)

// TestConclusions plants domains and compares what the daemon concludes with the truth.
func TestConclusions(t *testing.T) {
	var all []*truth.Domain
	for i := range *domains {
		if *only < 0 || *only == i {
			all = append(all, truth.Plant(*seed, i))
		}
	}
	w := newWorld(t, all)
	var simulations, actions, harmful int
	var wrong []string
	for _, p := range w.domains {
		figures, action := p.wrongFigures(), p.wrongAction(&p.advice, p.Action)
		if action == "" && p.Answer != "" {
			action = p.wrongAction(&p.after, p.After)
		}
		if len(figures) > 0 {
			simulations++
		}
		if action != "" {
			actions++
		}
		if p.harmful() {
			harmful++
			action += "; HARMFUL"
		}
		if len(figures) > 0 || action != "" {
			wrong = append(wrong, fmt.Sprintf("-seed %d -only %d (%s): %s\n\t%s", p.Seed, p.Number, p.Name, strings.Join(p.Scenarios, ", "),
				strings.Join(append(figures, action), "\n\t")))
		}
	}
	t.Logf("of %d domains: %d simulations right, %d next actions right, %d times harmful advice, %d views differ\n%s\n%s\n%s",
		len(all), len(all)-simulations, len(all)-actions, harmful, w.differences(), w.classTable(), w.actionTable(), strings.Join(wrong, "\n"))
	if *only >= 0 {
		w.domains[0].print(t)
	}
	for what, n := range map[string]int{"simulations": simulations, "next actions": actions} {
		if right := float64(len(all)-n) / float64(len(all)); right < goal {
			t.Errorf("%s: got %.1f %% right want %.0f %%", what, 100*right, 100*goal)
		}
	}
	if harmful > 0 {
		t.Errorf("got %d domains advised to tighten the policy while it harms legitimate mail, want 0", harmful)
	}
	if n := w.differences(); n > 0 {
		t.Errorf("got %d senders with another class in /insights/senders than in /insights/simulate, want 0", n)
	}
}

// TestPlanted checks that the planted domains are what the suite promises.
func TestPlanted(t *testing.T) {
	t.Parallel()
	const n = 1000
	scenarios, actions := map[string]int{}, map[string]int{}
	weaker := 0
	for i := range n {
		d := truth.Plant(*seed, i)
		if !maps.Equal(d.Figures.Affected, d.Full.Affected) {
			weaker++
		}
		for _, s := range d.Scenarios {
			scenarios[s]++
		}
		actions[d.Action.ID]++
		checkTruth(t, d)
	}
	for _, s := range truth.Scenarios() {
		if share := float64(scenarios[s]) / n; share < 0.05 {
			t.Errorf("%s: got %.1f %% of the domains want 5 %%", s, 100*share)
		}
	}
	if weaker < n*5/100 {
		t.Errorf("got %d of %d domains whose sp, np or t=y spares mail want 5 %%", weaker, n)
	}
	if got := actions["tighten_policy"]; got < n*30/100 {
		t.Errorf("tighten_policy: got %d of %d domains want 30 %%", got, n)
	}
	if got := actions["answer_question"]; got > n*20/100 {
		t.Errorf("answer_question: got %d of %d domains want at most 20 %%", got, n)
	}
}

// checkTruth checks that the figures of a domain lead to its action, with a margin.
func checkTruth(t *testing.T, d *truth.Domain) {
	t.Helper()
	f := d.Full
	legitimate := float64(f.Messages[truth.Legitimate])
	affected := float64(f.Affected[truth.Legitimate])
	asked := float64(f.Messages[truth.Undecidable])
	switch d.Action.ID {
	case "tighten_policy", "accept_forwarding", "":
		if affected > 0.004*legitimate || asked > 0.015*legitimate {
			t.Errorf("%d: %s: got %v of %v legitimate messages affected and %v undecidable", d.Number, d.Action.ID, affected, legitimate, asked)
		}
	case "fix_sender":
		if affected < 0.007*legitimate {
			t.Errorf("%d: %s: got %v of %v legitimate messages affected and %v undecidable", d.Number, d.Action.ID, affected, legitimate, asked)
		}
	case "answer_question":
		if affected > 0.004*legitimate || asked < 0.015*legitimate {
			t.Errorf("%d: %s: got %v of %v legitimate messages affected and %v undecidable", d.Number, d.Action.ID, affected, legitimate, asked)
		}
	}
	forwarded, broken := float64(f.Messages[truth.Forwarder]), float64(f.Affected[truth.Forwarder])
	if d.Action.ID == "accept_forwarding" && broken < 0.03*forwarded || d.Action.ID == "tighten_policy" && d.Accepted == 0 && broken > 0.015*forwarded {
		t.Errorf("%d: got %v of %v forwarded messages affected", d.Number, broken, forwarded)
	}
	for key, classes := range d.BySender() {
		if len(classes) > 1 {
			t.Errorf("%d: %s: got the classes %v want one", d.Number, key, classes)
		}
	}
}

// wrongFigures returns the figures of the simulation that are wrong.
func (p *planted) wrongFigures() []string {
	var wrong []string
	allowed := max(toleratedMessages, int(tolerance*float64(p.Figures.Total)))
	compare := func(name string, got *int, least, most int) {
		switch {
		case got == nil:
			wrong = append(wrong, name+": is missing")
		case *got < least-allowed || *got > most+allowed:
			wrong = append(wrong, fmt.Sprintf("%s: got %d want %d to %d", name, *got, least, most))
		}
	}
	s, messages, affected := p.simulation, p.Figures.Messages, p.Figures.Affected
	exactly := func(name string, got *int, want int) { compare(name, got, want, want) }
	exactly("legitimate_messages", s.LegitimateMessages, messages[truth.Legitimate])
	exactly("legitimate_affected", s.LegitimateAffected, affected[truth.Legitimate])
	exactly("forwarder_messages", s.ForwarderMessages, messages[truth.Forwarder])
	exactly("forwarder_affected", s.ForwarderAffected, affected[truth.Forwarder])
	either := messages[truth.Small] // unknown or spoofing
	compare("unknown_messages", s.UnknownMessages, messages[truth.Undecidable], messages[truth.Undecidable]+either)
	compare("unknown_affected", s.UnknownAffected, affected[truth.Undecidable], affected[truth.Undecidable]+either)
	compare("spoofing_messages", s.SpoofingMessages, messages[truth.Spoofing], messages[truth.Spoofing]+either)
	compare("spoofing_stopped", s.SpoofingStopped, affected[truth.Spoofing], affected[truth.Spoofing]+either)
	if s.UnknownMessages != nil && s.SpoofingMessages != nil {
		sum := *s.UnknownMessages + *s.SpoofingMessages
		exactly("unknown and spoofing messages", &sum, messages[truth.Undecidable]+messages[truth.Spoofing]+either)
	}
	return wrong
}

// wrongAction returns what is wrong with the next action, "" for nothing.
func (p *planted) wrongAction(by *advice, want truth.Action) string {
	given := by.NextAction
	switch {
	case p.marked != "":
		return p.marked
	case by.Stage != p.Stage:
		return fmt.Sprintf("stage: got %q want %q", by.Stage, p.Stage)
	case by.action() != want.ID:
		wrong := fmt.Sprintf("next action: got %q want %q %s", by.action(), want.ID, want.Sender)
		if given != nil {
			wrong += ": " + given.Title + ": " + given.Reason
		}
		return wrong
	case want.ID == "tighten_policy" && !p.isNext(given.Record.Value):
		return fmt.Sprintf("record: got %q want p=%s for all messages", given.Record.Value, p.Next)
	case want.Sender == "":
		return ""
	case want.ID == "answer_question" && (given.Question == nil || given.Question.Key != want.Sender):
		return fmt.Sprintf("question: got %+v want %s", given.Question, want.Sender)
	case want.ID == "fix_sender" && p.titled(given.Title) != want.Sender:
		return fmt.Sprintf("sender to fix: got %s, in %q, want %s", p.titled(given.Title), given.Title, want.Sender)
	}
	return ""
}

// isNext reports whether a record has the next policy, without t=y and pct.
func (p *planted) isNext(record string) bool {
	return strings.Contains(record, "; p="+p.Next+";") && !strings.Contains(record, "t=y") && !strings.Contains(record, "pct=")
}

// action returns the next action, "" for none.
func (a *advice) action() string {
	if a.NextAction == nil {
		return ""
	}
	return a.NextAction.ID
}

// titled returns the key of the sender that the title of an action names: the one with the longest
// name in it.
func (p *planted) titled(title string) string {
	key, name := "", ""
	for _, s := range p.simulation.Senders {
		if strings.Contains(title, s.Name) && len(s.Name) > len(name) {
			key, name = s.Key, s.Name
		}
	}
	return key
}

// harmful reports whether the advice is to tighten the policy while that affects legitimate mail.
func (p *planted) harmful() bool {
	f := p.Full
	return p.advice.action() == "tighten_policy" && float64(f.Affected[truth.Legitimate]) > harmless*float64(f.Messages[truth.Legitimate])
}

// classOf returns the class of a sender in the simulation, "" if it has no such sender.
func (p *planted) classOf(key string) string {
	for _, s := range p.simulation.Senders {
		if s.Key == key {
			return s.Class
		}
	}
	return ""
}

// differences returns how many senders have another class in the list of senders.
func (w *world) differences() (n int) {
	for _, p := range w.domains {
		for _, s := range p.senders {
			if class := p.classOf(s.Key); class != "" && class != s.Class {
				n++
			}
		}
	}
	return n
}

// classTable is the planted messages by class, and the class that their sender is shown with.
func (w *world) classTable() string {
	cells := map[[2]string]int{}
	for _, p := range w.domains {
		for key, classes := range p.BySender() {
			shown := p.classOf(key)
			if shown == "" {
				shown = "other sender"
			}
			for class, messages := range classes {
				cells[[2]string{string(class), shown}] += messages
			}
		}
	}
	return table("planted messages \\ shown class", cells)
}

// actionTable is the planted actions and those that were given.
func (w *world) actionTable() string {
	cells := map[[2]string]int{}
	for _, p := range w.domains {
		cells[[2]string{name(p.Action.ID), name(p.advice.action())}]++
	}
	return table("planted action \\ given action", cells)
}

func name(action string) string {
	if action == "" {
		return "nothing"
	}
	return action
}

// table formats cells by row and column.
func table(title string, cells map[[2]string]int) string {
	rows, columns := map[string]bool{}, map[string]bool{}
	for cell := range cells {
		rows[cell[0]], columns[cell[1]] = true, true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-32s", title)
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		fmt.Fprintf(&b, "%18s", column)
	}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&b, "\n%-32s", row)
		for _, column := range slices.Sorted(maps.Keys(columns)) {
			fmt.Fprintf(&b, "%18d", cells[[2]string{row, column}])
		}
	}
	return b.String() + "\n"
}

// print logs all about a domain.
func (p *planted) print(t *testing.T) {
	t.Helper()
	t.Logf("planted:\n%s\nDNS:\n%s", strings.Join(p.Flows(), "\n"), p.Zone())
	for _, s := range p.simulation.Senders {
		t.Logf("shown: %-40s %-12s %6d messages, %6d affected: %s", s.Key, s.Class, s.Messages, s.Affected, s.Name)
	}
	t.Logf("advice: %+v", p.advice)
	if p.advice.NextAction != nil {
		t.Logf("next action: %+v", *p.advice.NextAction)
	}
}
