package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/journal"
)

// Received records that everything before it came from somewhere else: an archive, another place, a program that did
// not sign its commits, a change of the log by another program. It ends all that was open: the run, the queue,
// questions, answers that no call has used, grants and calls without an outcome. It adds no message, and the
// histories do not change.
type Received struct {
	From     string   `json:"from"`           // one of the constants
	Had      Settings `json:"had"`            // what the log had, to be shown
	Settings Settings `json:"settings"`       // what holds from here on
	Kept     bool     `json:"kept,omitempty"` // the user trusted the log: nothing ends
}

// Where a log came from.
const (
	FromImport    = "import"    // an archive or another root
	FromUnsigned  = "unsigned"  // a program that did not sign
	FromElsewhere = "elsewhere" // a key signed it that is not known in this place
	FromAltered   = "altered"   // its commits do not match, or its end is missing
)

const receivedReason = "the task was received from elsewhere"

// CodeReceived is the RunEnded.Code of a run that a Received ended.
const CodeReceived = "received"

// EventType is the name in the journal and in the event stream.
func (Received) EventType() string { return "task.received" }

// Reception is what a state keeps of the newest Received.
type Reception struct {
	From      string   `json:"from"`
	At        int64    `json:"at"` // Unix milliseconds
	Had       Settings `json:"had"`
	Kept      bool     `json:"kept,omitempty"`
	Run       string   `json:"run,omitempty"`   // the run that ended by it
	Queue     []string `json:"queue,omitempty"` // the words that waited
	Questions int      `json:"questions,omitempty"`
	Answers   int      `json:"answers,omitempty"`
}

// Proposed returns the settings without those that another user may not decide: the provider, what is allowed, the
// address that gets a key, and the limits.
func (s Settings) Proposed() Settings { return s.Trusting(Settings{}) }

// Trusting are the settings with the policy, address and limits of had, which Proposed removes.
func (s Settings) Trusting(had Settings) Settings {
	s.BaseURL, s.Account, s.Limits = had.BaseURL, had.Account, had.Limits
	s.Approve, s.Allow, s.Deny, s.Tools, s.AskTools, s.DenyTools = had.Approve, had.Allow, had.Deny, had.Tools, had.AskTools, had.DenyTools
	return s
}

// Powers names, in words, what Proposed takes away and what lets a task do more than a new one.
func (s Settings) Powers() []string {
	var out []string
	if s.Approve != "" && s.Approve != "ask" {
		out = append(out, "approve "+s.Approve)
	}
	if free := slices.Concat(s.Allow, s.Tools); len(free) > 0 {
		out = append(out, "allowed without asking: "+strings.Join(free, ", "))
	}
	if s.BaseURL != "" {
		out = append(out, "base URL "+s.BaseURL)
	}
	if s.Account != "" {
		out = append(out, "the key of profile "+s.Account)
	}
	return out
}

// Notes list for the user the settings that a task came with and that do not apply here. There are none when it
// brought no settings, or when the user kept it as it is. now are the settings that apply. A nil Reception has none.
func (r *Reception) Notes(now Settings) []string {
	if r == nil || r.Kept {
		return nil
	}
	var out []string
	if had := r.Had.Powers(); len(had) > 0 {
		text := "it came with " + strings.Join(had, "; ")
		if slices.Equal(now.Powers(), had) {
			out = append(out, text+"; these were taken over")
		} else {
			out = append(out, text+"; these do not hold here, your own settings do (--trust-settings takes them over)")
		}
	}
	for _, words := range r.Queue {
		line, _, _ := strings.Cut(words, "\n")
		out = append(out, "a message that waited in it is not sent: "+line)
	}
	if n := r.Answers; n > 0 {
		out = append(out, fmt.Sprintf("%d recorded answer%s to its questions do not count; they are asked again", n,
			map[bool]string{false: "s"}[n == 1]))
	}
	return out
}

// Open reports whether anything is open that Received ends.
func (s *State) Open() bool {
	return len(s.Queue)+len(s.Questions)+len(s.Answered) > 0 || s.Run != nil && s.Run.Outcome == "" || s.Restoring != nil
}

func (s *State) receive(e Received, c journal.Commit) {
	r := Reception{From: e.From, At: c.At, Had: e.Had, Kept: e.Kept, Questions: len(s.Questions), Answers: len(s.Answered)}
	for _, q := range s.Queue {
		r.Queue = append(r.Queue, q.Text)
	}
	if run := s.Run; run != nil && run.Outcome == "" {
		r.Run = run.ID
	}
	s.Received, s.Begins = &r, c.Seq
	if e.Kept {
		return
	}
	s.Settings = e.Settings
	s.endUnfinished(c.At)
	s.Questions, s.Answered, s.Queue, s.QueuedAt = nil, nil, nil, nil
	s.WaitingUntil, s.Restoring = 0, nil
	for _, call := range s.order {
		if call.Finished == nil {
			call.Foreign = true // whether it started, and who allowed it, is not known
		}
	}
	for i := range s.Branches {
		l := &s.Branches[i].Leaf
		l.Questions, l.Answered, l.Queue, l.QueuedAt = nil, nil, nil, nil
	}
}

// Brings names what a log would bring along that is not proven: Powers, and what is open.
func (s *State) Brings() []string {
	out := s.Settings.Powers()
	count := func(n int, one, many string) {
		if n > 0 {
			if n > 1 {
				one = many
			}
			out = append(out, fmt.Sprintf("%d %s", n, one))
		}
	}
	count(len(s.Queue), "message in the queue", "messages in the queue")
	count(len(s.Answered), "recorded answer", "recorded answers")
	count(len(s.Questions), "open question", "open questions")
	if s.Run != nil && s.Run.Outcome == "" {
		out = append(out, "an unfinished run")
	}
	return out
}
