package agent

import (
	"fmt"
	"slices"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// window keeps the checked messages of the visible API history, so that a turn costs what it appends. Any change but an
// append rebuilds it.
type window struct {
	builder *contextwindow.Builder
	options contextwindow.Options
	taken   []*task.Message
}

// messages is the history as it may be sent, in whichever form it is stored.
func (w *window) messages(
	api []*task.Message, o contextwindow.Options, cover func(*task.Message) []byte,
) ([]llm.Message, []contextwindow.Note, error) {
	same := w.builder != nil && w.options == o && len(w.taken) <= len(api)
	for i := 0; same && i < len(w.taken); i++ {
		same = w.taken[i] == api[i]
	}
	if !same {
		w.builder, w.options, w.taken = contextwindow.NewBuilder(o), o, nil
	}
	for _, m := range api[len(w.taken):] {
		w.builder.Append(cover(m))
		w.taken = append(w.taken, m)
	}
	return w.builder.Messages()
}

// buildRequest builds the next request from the task's history and settings alone.
func (a *Agent) buildRequest() (llm.Request, error) {
	s := a.state()
	messages, notes, err := a.sending.window.messages(s.Sent(), a.windowOptions(), a.withoutWithheld)
	if err != nil {
		return llm.Request{}, fmt.Errorf("build the request: %w", err)
	}
	for _, n := range notes {
		if !a.sending.notes[n] {
			if a.sending.notes == nil {
				a.sending.notes = map[contextwindow.Note]bool{}
			}
			a.sending.notes[n] = true
			where := fmt.Sprintf("message %d: ", n.Index)
			if n.Index < 0 { // it is about no message of its own
				where = ""
			}
			a.notice("not sent as stored: " + where + n.Text)
		}
	}
	return llm.Request{
		Model:     a.Task.Settings.Model,
		System:    a.systemPrompt(),
		Tools:     a.toolSpecs(),
		Messages:  messages,
		MaxTokens: a.Task.Settings.MaxTokens,
		Replies:   s.Replies,
		Failures:  s.Failures,
	}, nil
}

// windowOptions describe which of the model's own thinking its provider wants back.
func (a *Agent) windowOptions() contextwindow.Options {
	o := contextwindow.For(a.Model.Provider.Name())
	o.KeepReasoningContent = slices.Contains(a.state().ReasoningTo, a.serverName())
	if a.sending.unthinking {
		o.DropThinking, o.KeepReasoning, o.KeepSignatures, o.KeepDetails, o.KeepReasoningContent = true, false, false, false, false
	}
	return o
}

// serverName names the server and the model that answer, "" where there is only one.
func (a *Agent) serverName() string {
	if at, is := a.Model.Provider.(llm.Addressee); is {
		return at.Server(a.Task.Settings.Model)
	}
	return ""
}

func (a *Agent) toolSpecs() []llm.ToolSpec {
	specs := make([]llm.ToolSpec, 0, len(a.Tools.List))
	for _, t := range a.Tools.List {
		spec := t.Spec()
		if !a.offers(spec) || a.modeLacks(spec) != nil {
			continue
		}
		specs = append(specs, llm.ToolSpec{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
	}
	return specs
}

func estimateTokens(bytes int) int64 {
	return contextwindow.EstimateTokens(int64(bytes), contextwindow.Calibration{})
}
