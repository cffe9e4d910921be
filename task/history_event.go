package task

import "github.com/roost-dev/roost/api"

// HistoryCondensed records that a summary replaces older messages in what is sent. The summary and the row that shows
// it are in the same commit. The event does not change the messages themselves: Raw adds Roo's tag to them as long as
// the summary is part of the history. So a rewind over the summary, or an undo, brings them back by itself, and
// condensing a long task writes little.
type HistoryCondensed struct {
	Run      string  `json:"run,omitempty"`
	Condense string  `json:"condense,omitempty"` // the summary's condenseId
	Summary  uint64  `json:"summary,omitempty"`  // the message that holds it
	Row      uint64  `json:"row,omitempty"`      // the person's row
	Covers   []Run64 `json:"covers,omitempty"`   // messages of the API history
	Messages int     `json:"messages,omitempty"` // how many are covered
	Before   int64   `json:"tokens_before,omitempty"`
	After    int64   `json:"tokens_after,omitempty"` // estimated

	// The commit whose summary this takes back, or gives again. Nothing else is set then.
	Undoes uint64 `json:"undoes,omitempty"`
	Redoes uint64 `json:"redoes,omitempty"`
}

// HistoryTruncated records that older messages are not sent any more, because the request had become too long. A
// marker follows the last of them; the marker and its UI row are in the same commit. In logs of older versions the
// messages' new content is in that commit as well, and Covers is empty.
type HistoryTruncated struct {
	Run        string  `json:"run,omitempty"`
	Truncation string  `json:"truncation,omitempty"` // the marker's truncationId
	Marker     uint64  `json:"marker,omitempty"`
	Row        uint64  `json:"row,omitempty"`
	Covers     []Run64 `json:"covers,omitempty"`
	Messages   int     `json:"messages,omitempty"` // how many are hidden by it
	Before     int64   `json:"tokens_before,omitempty"`
	After      int64   `json:"tokens_after,omitempty"` // estimated

	Undoes uint64 `json:"undoes,omitempty"`
	Redoes uint64 `json:"redoes,omitempty"`
}

func (HistoryTruncated) EventType() string { return "history.truncated" }
func (HistoryCondensed) EventType() string { return "history.condensed" }

// Rewound moves the head of both histories in one commit. The messages that it hides stay on a branch, which this
// commit names: undo returns to it, and a fork can start from it.
type Rewound struct {
	Why  string  `json:"why"`            // rewind, edit, remove, branch; fork, where a new task leaves the rest out
	By   string  `json:"tool,omitempty"` // the other program that did it, when this event takes its change in
	To   uint64  `json:"to,omitempty"`   // the first hidden row
	Hide []Run64 `json:"hide,omitempty"` // the hidden messages of both histories, in order

	// Lift names hidden summaries and markers: the messages that they covered are sent again.
	Lift []string `json:"lift,omitempty"`
	// Calls are calls of replies that stay, whose outcome came later: it does not count any more. A call that had
	// started then has an unknown outcome, because its effects happened.
	Calls     []string `json:"calls,omitempty"`
	Questions []string `json:"questions,omitempty"`
	Inputs    []string `json:"inputs,omitempty"`
	Files     uint64   `json:"files,omitempty"` // file records from this commit on do not count any more; 0 = all count

	// Unmatched is how many messages of another program could not be matched to rows: it is a guess whether they go
	// or stay.
	Unmatched int `json:"unmatched,omitempty"`

	// Branch is the branch that becomes the head. Then nothing else is set.
	Branch uint64 `json:"branch,omitempty"`
}

// Gone is how many messages of each history a move of the head hid. It is for display.
type Gone struct{ UI, API int }

// Undone undoes or redoes a move of the head, which it names by its commit: everything is exactly as it was before or
// after that move.
type Undone struct {
	Undoes uint64 `json:"undoes,omitempty"`
	Redoes uint64 `json:"redoes,omitempty"`
}

// EventType is the name in the journal and in the event stream.
func (Rewound) EventType() string { return "history.rewound" }

func (Undone) EventType() string { return "history.undone" }

// Cover is a summary or a marker, and how many messages it stands for.
type Cover struct {
	Kind     string // Condense, Truncate
	ID       string // condenseId, truncationId
	Message  uint64 // the summary, the marker
	Row      uint64
	Seq      uint64 // of the commit that made it
	At       int64  // Unix milliseconds
	Messages int
	Before   int64 // tokens of the next request, about
	After    int64

	// While it is undone: the messages that followed its message and its row; 0 = the end.
	Off     bool   `json:",omitempty"`
	Next    uint64 `json:",omitempty"`
	NextRow uint64 `json:",omitempty"`
}

// key is the tag of the messages that a cover stands for.
func (c *Cover) key() string {
	if c.Kind == api.ActionTruncate {
		return "truncationParent"
	}
	return "condenseParent"
}

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
