package task

import (
	"errors"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
)

// Blobs gives the payloads that events name.
type Blobs interface {
	// Range returns length bytes of a blob from off; length < 0 means to its end.
	Range(hash string, off, length int64) ([]byte, error)
}

// ErrNoBlobs is the error of a state without Blobs for each payload.
var ErrNoBlobs = errors.New("task: no blobs to load from")

// State is the fold of a task's log up to a commit.
type State struct {
	Seq       uint64 // the newest folded commit
	Epoch     uint64
	ID        string
	Title     string
	Tags      []string // what the person filed it under, in order
	Pinned    bool     // it stays at the top of lists
	Actions   Actions  // what a person did to it that can be taken back
	Origin    string
	Number    int
	Parent    string
	RootTask  string
	CreatedAt int64 // Unix milliseconds
	UpdatedAt int64
	Settings  Settings
	Adopted   *Adopted // the task began in another tool's storage
	Fork      *Forked  `json:",omitempty"` // the task began with another one's history

	Received *Reception `json:",omitempty"` // it came from elsewhere
	// Begins is the newest commit that ended all that was open before it, or in which the user vouched for the
	// commits before it: a fork's first, or a Received. 0 = there is none.
	Begins uint64 `json:",omitempty"`

	Run      *Run // the newest run; nil when there was none
	Runs     RunHistory
	Turns    int // requests to the model, ever
	Replies  int // complete assistant messages in the visible API history
	Failures int // failed attempts since the last of them

	WaitingUntil int64             `json:",omitempty"` // Unix milliseconds: a quota is used up till then; 0 = it does not wait
	Withheld     []MessageWithheld `json:",omitempty"` // what providers refused, oldest first
	ReasoningTo  []string          `json:",omitempty"` // servers that want the reasoning of earlier replies back
	Covers       []Cover           `json:",omitempty"` // summaries that were made here, oldest first

	Questions []*Question
	Answered  []Answered // answers that their calls have not used yet
	Queue     []InputQueued
	Files     []FileRecord
	Children  []Child
	Usage     UsageTotals
	Refused   []ForeignRefused
	Problems  []Problem

	// Checkpoints are in the order of their numbers, those of rewound messages too. Each completed restore adds one
	// of reason "restored", which is derived from it: only a checkpoint that keeps contents has an event of its own.
	Checkpoints []Checkpoint `json:"-"`
	Restoring   *Restoring   `json:"-"` // files are being put back: nothing else may run

	QueuedAt map[string]uint64 `json:",omitempty"` // the commit of each queued input
	Branches []Branch          `json:",omitempty"` // heads that were left, oldest first
	Moved    uint64            `json:",omitempty"` // the newest commit that added to the histories
	Touched  []int             `json:",omitempty"` // places in Calls of those that branches see differently

	last     Position // of the event that was folded last
	doubtful bool     // see Doubtful
	runsOnly bool     // see NewRuns
	blobs    Blobs
	source   Source            // nil while every message is in memory
	room     int               // bytes of messages that stay in memory with a source
	held     []held            // what is in memory, oldest first
	holding  int               // bytes of it
	kinds    map[string]string // each kind of message once
	messages []*Message        // by number, from 1
	ui, api  []*Message        // visible, in order
	lent     []*noteMemory     // what holds those that were noted
	calls    map[string]*Call
	order    []*Call
	records  map[string]*records
	filed    []FileRecord // all that ever was, once there are branches
	fileAt   []int        // the indexes of Files in it
}

// Completes reports whether the model's side ends in a reply whose last call completes the task.
func (s *State) Completes() bool {
	if len(s.api) == 0 {
		return false
	}
	uses := s.api[len(s.api)-1].facts.Uses
	return len(uses) > 0 && uses[len(uses)-1].Name == "attempt_completion"
}

// Question is one thing only the person can decide.
type Question struct {
	api.QuestionOpened
	Opened int64    // Unix milliseconds
	Seq    uint64   // of the commit that opened it
	Asked  Position `json:",omitzero"`  // the newest event that asked it: a run that continues may ask it again
	Run    string   `json:",omitempty"` // the run that asked it then
}

func (s *State) openQuestion(e api.QuestionOpened, c journal.Commit, at Position) {
	s.Answered = slices.DeleteFunc(s.Answered, func(a Answered) bool { return a.Question == e.Question })
	delete(s.Runs.Answers, e.Question)
	q := s.Question(e.Question)
	if q == nil {
		q = &Question{QuestionOpened: e, Opened: c.At, Seq: c.Seq}
		s.Questions = append(s.Questions, q)
	}
	q.Asked, q.Run = at, ""
	if s.Run != nil {
		q.Run = s.Run.ID
	}
}

func (s *State) closeQuestion(e api.QuestionClosed, c journal.Commit, at Position) {
	asker := ""
	if q := s.Question(e.Question); q != nil {
		asker = q.Run
		if q.Call != "" && e.Reason == "" {
			s.Answered = append(s.Answered, Answered{QuestionOpened: q.QuestionOpened, Answer: e, Seq: c.Seq})
		}
	}
	if e.Reason == "" {
		s.Runs.answer(e, asker, at)
	}
	s.Questions = slices.DeleteFunc(s.Questions, func(q *Question) bool { return q.Question == e.Question })
	if s.Run != nil && s.Run.Waiting == e.Question {
		s.Run.Waiting = ""
	}
}

// Answered is a question and its answer while the call that asked has no
// outcome: a kill in between must not cost the answer.
type Answered struct {
	api.QuestionOpened
	Answer api.QuestionClosed
	Seq    uint64 // of the commit with the answer
}

// Answer is the unused answer to a question that a call asked. It answers that
// question only as it was asked: consent to one change is none to another.
func (s *State) Answer(q api.QuestionOpened) (api.QuestionClosed, bool) {
	for _, a := range s.Answered {
		if a.Question == q.Question && a.QuestionOpened.Same(q) {
			return a.Answer, true
		}
	}
	return api.QuestionClosed{}, false
}

// Problem is a part of the log that the fold cannot use: a commit that is lost, a message whose bytes are gone.
type Problem struct {
	Seq    uint64
	Reason string
}

// Doubtful reports whether the fold could not open a payload, perhaps for want of file descriptors. The next fold may
// find it, so no caller should keep this state.
func (s *State) Doubtful() bool { return s.doubtful }

// New is the state before the first commit. Without blobs, messages that lie in
// one are marked missing.
func New(blobs Blobs) *State {
	if blobs == nil {
		blobs = noBlobs{}
	}
	return &State{blobs: blobs, Number: 1, calls: map[string]*Call{}, kinds: map[string]string{}}
}

type noBlobs struct{}

func (noBlobs) Range(string, int64, int64) ([]byte, error) { return nil, ErrNoBlobs }

// With makes the state load payloads from somewhere else from now on: a reader
// folds in what another program wrote, which is no blob yet.
func (s *State) With(blobs Blobs) *State {
	s.blobs = blobs
	return s
}

// UI is the visible history that the person sees. Do not modify it.
func (s *State) UI() []*Message { return s.ui }

// API is the visible history that the model sees. Do not modify it.
func (s *State) API() []*Message { return s.api }

// Message finds a message by its number, hidden ones too; nil when there is none.
func (s *State) Message(id uint64) *Message {
	if id == 0 || id > uint64(len(s.messages)) {
		return nil
	}
	return s.messages[id-1]
}

// NextMessage is the number that the next new message gets.
func (s *State) NextMessage() uint64 { return uint64(len(s.messages)) + 1 }

// Call finds a tool call by the model's id; nil when there is none.
func (s *State) Call(id string) *Call { return s.calls[id] }

// Calls are all tool calls of the task, in the order the model made them.
func (s *State) Calls() []*Call { return s.order }

// Question finds an open question; nil when it is not open.
func (s *State) Question(id string) *Question {
	for _, q := range s.Questions {
		if q.Question == id {
			return q
		}
	}
	return nil
}

// LastTS is the newest time stamp of the visible histories, 0 when there is none.
func (s *State) LastTS() int64 {
	var last int64
	for _, list := range [][]*Message{s.ui, s.api} {
		if len(list) > 0 {
			last = max(last, list[len(list)-1].TS())
		}
	}
	return last
}
