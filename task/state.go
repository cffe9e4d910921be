package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task/facts"
)

// State is the fold of a task's log up to a commit.
type State struct {
	Seq       uint64 // the newest folded commit
	Epoch     uint64
	ID        string
	Title     string
	Tags      []string // what the person filed it under, in order
	Pinned    bool     // it stays at the top of lists
	Actions   Actions  // undoable actions of a user
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
	// Begins is the newest commit that ended everything open before it, or in which the user vouched for the commits
	// before it: a fork's first, or a Received. 0 = there is none.
	Begins uint64 `json:",omitempty"`

	Access api.Access `json:",omitzero"` // the owner of the task, and who else may reach it
	// Person is the account that chose the settings and ordered what is open: for other accounts these do not apply.
	// "" without accounts.
	Person string `json:",omitempty"`

	Run      *Run       `codec:"-"` // the newest run; nil when there was none
	Runs     RunHistory `codec:"-"`
	Turns    int        // requests to the model, ever
	Replies  int        // complete assistant messages in the visible API history
	Failures int        // failed attempts since the last of these messages

	WaitingUntil int64             `json:",omitempty"` // Unix milliseconds: a quota is used up until then; 0 = it does not wait
	Withheld     []MessageWithheld `json:",omitempty"` // message parts that providers refused, oldest first
	ReasoningTo  []string          `json:",omitempty"` // servers that need the reasoning of earlier replies
	Covers       []Cover           `json:",omitempty"` // summaries that were made here, oldest first

	OpenItems
	Files    []FileRecord `codec:"-"`
	Children []Child
	Usage    UsageTotals
	Refused  []ForeignRefused
	Problems []Problem

	// Checkpoints are in the order of their numbers, those of rewound messages included. Each completed restore adds
	// one with the reason "restored", which is derived from the restore: only a checkpoint that keeps contents has an
	// event of its own.
	Checkpoints []Checkpoint `codec:"-"`
	Restoring   *Restoring   `codec:"-"` // a restore of files is not finished: nothing else may run

	Branches []Branch `json:",omitempty"` // heads that were left, oldest first
	Moved    uint64   `json:",omitempty"` // the newest commit that added to the histories
	Touched  []int    `json:",omitempty"` // indexes in Calls of those whose outcome differs between branches

	last     Position // of the event that was folded last
	doubtful bool     // see Doubtful
	runsOnly bool     // see NewRuns
	blobs    Blobs
	source   Source            // nil while every message is in memory
	room     int               // bound of the bytes of messages that stay in memory, with a source
	held     []held            // what is in memory, oldest first
	holding  int               // their number of bytes
	kinds    map[string]string // each kind of message once
	messages []*Message        // all messages by number, from 1
	ui, api  []*Message        // visible, in order
	calls    map[string]*Call
	order    []*Call
	records  map[string]*records
	filed    []FileRecord // all records that ever existed, once there are branches
	fileAt   []uint64     // for each of Files, its number in filed, from 1
}

// OpenItems are what waits: for the person, or for a run.
type OpenItems struct {
	Questions []*Question
	Answered  []Answered // answers that their calls have not used yet
	Queue     []InputQueued
	QueuedAt  map[string]uint64 `json:",omitempty"` // the commit of each queued input
}

// clone returns items that change independently.
func (o OpenItems) clone() OpenItems {
	var questions []*Question
	for _, q := range o.Questions {
		questions = append(questions, new(*q))
	}
	return OpenItems{questions, slices.Clone(o.Answered), slices.Clone(o.Queue), maps.Clone(o.QueuedAt)}
}

// Question is a question that only the person can decide.
type Question struct {
	api.QuestionOpened
	Opened int64    // Unix milliseconds
	Seq    uint64   // the commit that opened it
	Asked  Position `json:",omitzero"`  // the newest event that asked it: a run that continues may ask it again
	Run    string   `json:",omitempty"` // the run that asked it then
}

// Answered is a question and its answer while the call that asked has no
// outcome: a kill in between must not cost the answer.
type Answered struct {
	api.QuestionOpened
	Answer api.QuestionClosed
	Seq    uint64 // the commit with the answer
}

// Problem is a part of the log that the fold cannot use: a commit that is lost, a message whose bytes are gone.
type Problem struct {
	Seq    uint64
	Reason string
}

// Reception is the part of the newest Received that a state keeps.
type Reception struct {
	From      string   `json:"from"`
	At        int64    `json:"at"` // Unix milliseconds
	Had       Settings `json:"had"`
	Kept      bool     `json:"kept,omitempty"`
	Run       string   `json:"run,omitempty"`   // the run that ended by it
	Queue     []string `json:"queue,omitempty"` // the user's queued words
	Questions int      `json:"questions,omitempty"`
	Answers   int      `json:"answers,omitempty"`
}

// Branch is a former head: the histories before a rewind, or before the head moved to another branch. All its
// messages are kept.
type Branch struct {
	Seq  uint64 // the commit that left it; it is the name of the branch
	At   int64  // time of that commit; Unix milliseconds
	Why  string // why the head left it: rewind, edit, remove, branch
	By   string `json:",omitempty"` // the tool that did it, when it was not Roost
	Leaf Leaf
}

// Leaf is a version of the histories: everything that a rewind moves. It names messages and does not hold them, so it
// stays small for long histories.
type Leaf struct {
	Seq       uint64 // the commit at which the head left this version
	UI, API   []Run64
	NoSummary []Run64 `json:",omitempty"` // messages whose tags are lifted
	NoMarker  []Run64 `json:",omitempty"`
	Ends      []End   `json:",omitempty"` // of calls whose outcome differs between branches
	OpenItems
	Files    []Run64 `json:",omitempty"` // numbers in the list of all records, from 1
	Failures int
	Run      string `json:",omitempty"`
	Waiting  string `json:",omitempty"`
	Rewound  bool   `json:",omitempty"`
}

// End is the outcome of a call on one branch.
type End struct {
	Call int // its index in State.Calls
	Progress
}

// Message is one element of a history, at its newest state.
type Message struct {
	ID      uint64
	History History
	Seq     uint64 // the commit that added it
	Hidden  string // why it is hidden; "" while it is visible
	Missing bool   // its bytes are gone: the blob that held them is missing or damaged
	Foreign bool   // another program wrote it
	kept

	state *State // loads what is not in memory
	raw   json.RawMessage
	saved []byte // streamed text that raw does not hold yet
	text  []byte // all text that was saved for it; what Piece.TextOf means

	rawAway, textAway bool // these bytes are not in memory
}

// kept is the rest of a message in a snapshot: its facts, and the places of its bytes in the log. The members are
// exported for the codec.
type kept struct {
	Facts  facts.Facts
	Lifted lifted // tags that are in the bytes but do not count any more
	Covers []int  // the summaries that cover it, by their indexes in State.Covers

	Body      place     // of raw
	Pieces    [][]place // for each piece of a composed raw, the places of its bytes
	Texts     []place   // of text
	SavedFrom int       // Texts[SavedFrom:] are the places of saved
}

// Call is one tool call of the model, and its outcome.
type Call struct {
	ID       string
	Name     string
	Message  uint64 // the assistant message that made it
	Answered bool   // the API history holds its result
	Foreign  bool   // another program's run made it: whether it started is not known
	Progress

	state *State
}

// Progress is how far a call came. It may differ between branches.
type Progress struct {
	Started  bool
	Replay   string
	Before   map[string]string // hashes of the files that it was to replace
	UI       uint64            // its row for the person
	Process  *ToolProcess
	Finished *ToolFinished // its Result may not be in memory: use Call.Result
	At       place         // of Finished
	Rewound  bool          // it had finished, and a rewind took its outcome back

	away bool // Finished.Result is not in memory
}

// held is something whose bytes are in memory.
type held struct {
	message *Message
	call    *Call
	size    int
}

// Child is a task that this one started.
type Child struct {
	ID      string
	Call    string // the call that started it; "" when another program started it
	Message uint64 `json:",omitempty"` // the reply that made the call
	Mode    string `json:",omitempty"`
	Remark  string `json:",omitempty"` // the user's remark with their yes
	Ended   bool
	Outcome string `json:",omitempty"`
	Result  string
}

// lifted marks the tags of a message that do not count any more although its bytes hold them: their summary or marker
// is rewound. Rewriting the messages would cost as much as their bytes.
type lifted uint8

// Blobs returns the payloads that events name.
type Blobs interface {
	// Range returns length bytes of a blob from off; length < 0 means to its end.
	Range(hash string, off, length int64) ([]byte, error)
}

// ErrNoBlobs is the error of a state without Blobs for each payload.
var ErrNoBlobs = errors.New("task: no blobs to load from")

// ErrNoSource is the error of a state that must keep no bytes and has no log to read them from.
var ErrNoSource = errors.New("task: no log to read messages from")

// Source is where a state without the bytes reads them: the payloads that events name, and the commits.
type Source interface {
	Blobs
	// Commits yields the commits from seq on, in order, and an error in place of each damaged one.
	Commits(from uint64) iter.Seq2[journal.Commit, error]
}

// place is the location of bytes: in an event of the log, or in a range of a blob. The zero value is no location.
type place struct {
	Seq   uint64
	Event int

	Blob     string
	Off, Len int64
}

// New returns the state before the first commit. Without blobs, messages whose bytes are in a blob are marked as
// missing.
func New(blobs Blobs) *State {
	if blobs == nil {
		blobs = noBlobs{}
	}
	return &State{blobs: blobs, Number: 1, calls: map[string]*Call{}, kinds: map[string]string{}}
}

type noBlobs struct{}

func (noBlobs) Range(string, int64, int64) ([]byte, error) { return nil, ErrNoBlobs }

// With makes the state load payloads from these blobs from now on, for a reader that folds in changes of another
// program: no blob of the journal holds them yet.
func (s *State) With(blobs Blobs) *State {
	s.blobs = blobs
	return s
}

// Completes reports whether the API history ends in a reply whose last call completes the task.
func (s *State) Completes() bool {
	if len(s.api) == 0 {
		return false
	}
	uses := s.api[len(s.api)-1].Facts.Uses
	return len(uses) > 0 && uses[len(uses)-1].Name == "attempt_completion"
}

// Answer returns the unused answer to a question that a call asked. The answer counts only if the question is still
// the same: consent to one change is no consent to another.
func (s *State) Answer(q api.QuestionOpened) (api.QuestionClosed, bool) {
	for _, a := range s.Answered {
		if a.Question == q.Question && a.QuestionOpened.Same(q) {
			return a.Answer, true
		}
	}
	return api.QuestionClosed{}, false
}

// Doubtful reports whether the fold could not open a payload, perhaps for lack of file descriptors. The next fold may
// succeed, so no caller should keep this state.
func (s *State) Doubtful() bool { return s.doubtful }

// UI returns the visible history that the person sees. Do not modify it.
func (s *State) UI() []*Message { return s.ui }

// API returns the visible history that the model sees. Do not modify it.
func (s *State) API() []*Message { return s.api }

// Message finds a message by its number, hidden ones too; nil when there is none.
func (s *State) Message(id uint64) *Message {
	if id == 0 || id > uint64(len(s.messages)) {
		return nil
	}
	return s.messages[id-1]
}

// NextMessage returns the number that the next new message gets.
func (s *State) NextMessage() uint64 { return uint64(len(s.messages)) + 1 }

// Call finds a tool call by the model's id; nil when there is none.
func (s *State) Call(id string) *Call { return s.calls[id] }

// Calls returns all tool calls of the task, in the order the model made them.
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

// Load returns queued words with their images, which are in a blob when they are large. When it cannot read them, it
// returns the words without images and with the blob's name, so that the caller can report the missing images.
func (e InputQueued) Load(blobs Blobs) (InputQueued, error) {
	if e.ImagesBlob == "" {
		return e, nil
	}
	raw, err := blobs.Range(e.ImagesBlob, 0, -1)
	var images []string
	if err == nil {
		err = json.Unmarshal(raw, &images)
	}
	if err != nil {
		return e, fmt.Errorf("images of input %s, in blob %s: %w", e.Input, e.ImagesBlob, err)
	}
	e.Images, e.ImagesBlob, e.ImageCount = images, "", 0
	return e, nil
}

// LoadInput is InputQueued.Load for words of this state's queue.
func (s *State) LoadInput(e InputQueued) (InputQueued, error) { return e.Load(s.blobs) }

// UsageTotals is all usage that a task ever had, rewound parts included. It only grows.
type UsageTotals struct {
	Requests    int64
	Input       int64 // tokens, cache excluded
	Output      int64
	CacheRead   int64
	CacheWrite  int64
	CostMicros  int64 // of the requests whose price is known
	CostUnknown bool  // at least one request had no known price
}

// Add adds the usage of a request.
func (l *UsageTotals) Add(e UsageChanged) {
	if !e.More {
		l.Requests++
	}
	grow(&l.Input, e.Input)
	grow(&l.Output, e.Output)
	grow(&l.CacheRead, e.CacheRead)
	grow(&l.CacheWrite, e.CacheWrite)
	if e.CostMicros == nil {
		l.CostUnknown = true
		return
	}
	grow(&l.CostMicros, *e.CostMicros)
}

// grow adds to a sum that only grows: a negative number counts as 0, and the sum stops at the largest number instead
// of overflowing.
func grow(sum *int64, by int64) {
	*sum = api.AddClamped(*sum, max(by, 0))
}
