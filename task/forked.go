package task

import "github.com/roost-dev/roost/journal"

// Forked begins a task with the history of another one: all that its log says up to
// here. The two share those bytes and nothing else.
type Forked struct {
	Task      string   `json:"task"`
	From      string   `json:"from"`             // the task it is a fork of
	Source    string   `json:"source"`           // where that one stands
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

// fork makes the state that of a new task. What was spent, who ran it and what waits
// for a person are the other one's. Checkpoints are common: they say what files were.
func (s *State) fork(e Forked, c journal.Commit) {
	s.Fork = &e
	s.ID, s.Title, s.Tags, s.Pinned = e.Task, e.Title, nil, false
	s.Origin, s.Number, s.Parent, s.RootTask = e.Origin, 1, "", ""
	s.CreatedAt, s.UpdatedAt, s.Settings = e.CreatedAt, c.At, e.Settings
	s.Adopted, s.Deeds, s.Run, s.Runs, s.Turns = nil, Deeds{}, nil, RunHistory{}, 0
	s.WaitingUntil, s.Questions, s.Answered, s.Queue, s.QueuedAt = 0, nil, nil, nil, nil
	s.Children, s.Usage, s.Refused, s.Restoring = nil, Ledger{}, nil, nil
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
