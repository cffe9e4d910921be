package engine

import (
	"errors"
	"fmt"

	"github.com/roost-dev/roost/engine/scheduler"

	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// RunInfo is a run as its task's journal has it, and its state, whichever process works on it.
type RunInfo struct {
	task.Run
	Ref      store.Ref
	State    string // queued, running, waiting, completed, failed, cancelled, interrupted
	Question string // that it waits for, as Reply takes it; "" = none
	Position int    // in this process's queue, from 1; 0 = not in it
	Here     bool   // this process works on it, or will
}

// Ticket is a run whose start, or place in the queue, is on disk.
type Ticket struct {
	RunInfo
	From events.Cursor // what the run does comes behind this event of the task; zero = from the start
	Made bool          // the task is new
	Same bool          // the request was taken before: nothing was done now
}

// Message is what a person sends to a task, whatever it does just now.
type Message struct {
	ID       string // names it: the same one is taken once; "" = a new one
	Text     string
	Images   []string // data URLs
	Delivery string   // auto ("" too), queue, interrupt
	By       string   // the door it came through
	Request  Request  // how a run is started when none is there; Task, Text and Images are the message's
}

// Sent says what became of a message.
type Sent struct {
	How      string // answered, queued, started
	Ref      store.Ref
	Run      string // that has it, or will
	Question string // that it answered, as Reply takes it
	Input    string // by which it stands in the task's queue
}

// Asked is an open question of some task.
type Asked struct {
	ID   string // as Reply takes it: the task's id, a dot, and the question's
	Ref  store.Ref
	Task store.Summary
	Run  string
	At   int64         // Unix milliseconds
	From events.Cursor // the event that opened it
	Here bool          // a run of this process waits with it
	task.QuestionOpened
}

// Reply is what a person says to a question.
type Reply struct {
	ID      string // names it: the same one again gets what it got; "" = it has no name
	Choice  int    // from 1; 0 = none
	Text    string //
	Approve *bool
	Always  bool
	Stop    bool           // stop and save instead
	Seen    *events.Cursor // the newest event that the person saw; one from before the question is refused
	By      string
	// Request is how the run goes on where none is there.
	Request Request
}

// Replied says what an answer did.
type Replied struct {
	Asked  Asked
	Answer Answer
	Run    RunInfo // that goes on with it
}

// Why a desk refuses.
var (
	ErrRunning   = errors.New("a run works on it")                    // of this process; another's is journal.BusyError
	ErrNoRun     = errors.New("no such run")                          //
	ErrStale     = errors.New("something happened since it was seen") // an answer to what the person has not seen
	ErrQueueFull = errors.New("too much waits already")
	ErrDraining  = scheduler.ErrDraining
	ErrInput     = errors.New("no such input waits") // it was taken, or never there
)

// AnsweredError: somebody else's answer came first.
type AnsweredError struct {
	Question string
	Task     string
	Answer   task.QuestionClosed // what was said, and by whom
}

func (e *AnsweredError) Error() string {
	return fmt.Sprintf("answer %s of task %s: it was answered already, by %s", e.Question, e.Task, e.Answer.By)
}

// Is makes it an ErrNoQuestion too.
func (e *AnsweredError) Is(err error) bool { return err == ErrNoQuestion }

// RunFilter narrows a list of runs.
type RunFilter struct {
	State  string
	Limit  int
	Cursor string
}

// RecoverOptions say what becomes of runs that a dead process of this root left.
type RecoverOptions struct {
	Resume      bool // go on with interrupted ones, too
	MaxAttempts int  // how often in a row a task is gone on with; 0 = 3
}
