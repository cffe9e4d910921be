package running

import (
	"cmp"
	"strings"

	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
)

// document is what --output json prints: how a run ended.
type document struct {
	Task     string  `json:"task_id"`
	Run      string  `json:"run_id"`
	Status   string  `json:"status"`             // completed, failed, waiting, ...
	Result   string  `json:"result"`             // the final text of a completed run
	Reason   string  `json:"reason,omitempty"`   // why it did not complete; for a waiting run, the question
	Code     string  `json:"code,omitempty"`     // the kind of a failure or limit
	Question string  `json:"question,omitempty"` // its id: roost answer takes it
	Cost     *string `json:"cost"`               // US dollars; null when at least one price is not known
	Usage    spent   `json:"usage"`
	Turns    int     `json:"turns"`
	Elapsed  int64   `json:"elapsed_ms"`
}

// spent are the tokens of a run and its subtasks.
type spent struct {
	In  int64 `json:"tokens_in"`
	Out int64 `json:"tokens_out"`
}

// end returns the document about a run that was followed.
func (w *Watcher) end(o engine.Outcome) document {
	u := w.shown.Used()
	d := document{
		Task: w.task, Run: w.run, Status: o.State, Code: o.Code, Usage: spent{u.In, u.Out}, Turns: u.Turns,
		Elapsed: max(u.LastSeen-u.Started, 0),
	}
	if !u.Unknown {
		cost := u.Cost.String()
		d.Cost = &cost
	}
	if o.State == "completed" {
		d.Result = o.Reason
	} else {
		d.Reason = o.Reason
	}
	if id := cmp.Or(o.Question, w.asked.Question); o.State == "waiting" && id != "" {
		if d.Question = id; !strings.Contains(id, ".") {
			d.Question = cmp.Or(o.Child, w.task) + "." + id
		}
	}
	return d
}

// providerOf returns the address of a provider in this user's settings, and the origin of its key.
func (a *commands) providerOf(provider, profile string) (base, key string) {
	s, err := a.Settings()
	if err != nil {
		return "", ""
	}
	kept, err := a.Place().Secrets()
	if err != nil {
		return "", ""
	}
	_, fields := config.Profiles(s.Values, s.File)
	if _, key = config.ProfileKey(profile, kept, fields[profile]); key == "" {
		_, key = a.Place().ProviderKey(provider, kept, s)
	}
	return cmp.Or(s.Text("providers."+provider+".base_url"), setup.Address(provider)), key
}
