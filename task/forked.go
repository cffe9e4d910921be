package task

import "github.com/roost-dev/roost/journal"

// Forked begins a task with the history of another one: everything in its log up to here. The two share those bytes
// and nothing else.
type Forked struct {
	Task      string   `json:"task"`
	From      string   `json:"from"`             // the task it is a fork of
	Source    string   `json:"source"`           // where the other task is stored
	Seq       uint64   `json:"from_seq"`         // the newest commit that is shared
	Branch    uint64   `json:"branch,omitempty"` // the branch it starts from; 0 = the head
	At        int      `json:"at,omitempty"`     // the last row that it shows, by its number
	CreatedAt int64    `json:"created_at"`       // Unix milliseconds
	Origin    string   `json:"origin,omitempty"`
	Title     string   `json:"title,omitempty"`
	Metadata  string   `json:"metadata,omitempty"` // blob with what another tool knew of files (task_metadata.json)
	Settings  Settings `json:"settings"`
}

// EventType is the name in the journal and in the event stream.
func (Forked) EventType() string { return "task.forked" }

// fork makes the state that of a new task. Cost, runs and open questions belong to the other task. Both have the
// checkpoints: those record what files held.
func (s *State) fork(e Forked, c journal.Commit) {
	s.Fork = &e
	s.ID, s.Title, s.Tags, s.Pinned = e.Task, e.Title, nil, false
	s.Origin, s.Number, s.Parent, s.RootTask = e.Origin, 1, "", ""
	s.CreatedAt, s.UpdatedAt, s.Settings = e.CreatedAt, c.At, e.Settings
	s.Adopted, s.Actions, s.Run, s.Runs, s.Turns = nil, Actions{}, nil, RunHistory{}, 0
	s.WaitingUntil, s.Questions, s.Answered, s.Queue, s.QueuedAt = 0, nil, nil, nil, nil
	s.Children, s.Usage, s.Refused, s.Restoring = nil, UsageTotals{}, nil, nil
	if e.Branch != 0 {
		if b := s.Branch(e.Branch); b != nil {
			l := b.Leaf
			l.Questions, l.Answered, l.Queue, l.QueuedAt = nil, nil, nil, nil
			s.enter(l)
		}
	}
	s.Branches, s.Touched, s.Moved = nil, nil, c.Seq
	s.Received, s.Begins = nil, c.Seq
}

// Own reports whether a message was added by this task, and not by the one that it is
// a fork of.
func (s *State) Own(m *Message) bool { return s.Fork == nil || m.Seq > s.Fork.Seq }
