package task

import (
	"bytes"
	"encoding/json"

	"github.com/roost-dev/roost/api"
)

// Event is one thing that happened to a task. Its JSON is what the journal
// keeps; the type names are also those of the event stream.
type Event interface{ EventType() string }

// History names one of a task's two lists.
type History string

// The two histories.
const (
	UI  History = "ui"  // what the person sees: ui_messages.json
	API History = "api" // what the model sees: api_conversation_history.json
)

// Created begins a new task.
type Created struct {
	Task      string   `json:"task"`
	Title     string   `json:"title,omitempty"`
	Origin    string   `json:"origin,omitempty"` // extension, cli, api, web, editor
	Number    int      `json:"number"`           // Roo's stack depth, 1 for a top-level task
	Parent    string   `json:"parent,omitempty"`
	RootTask  string   `json:"root_task,omitempty"`
	CreatedAt int64    `json:"created_at"` // Unix milliseconds
	Settings  Settings `json:"settings"`

	// Access is the owner of the task, and who else may reach it. Without accounts it is empty.
	Access api.Access `json:"access,omitzero"`
	Person string     `json:"person,omitempty"` // the person who ordered it, if that is not the owner
}

// Settings are those that a task keeps for later runs, unless a run names others.
type Settings struct {
	Workspace string `json:"workspace,omitempty"`
	Mode      string `json:"mode,omitempty"`
	Profile   string `json:"profile,omitempty"` // Roo's apiConfigName
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	BaseURL   string `json:"base_url,omitempty"`
	Effort    string `json:"effort,omitempty"`     // how much the model thinks; "" = the model's default
	MaxTokens int    `json:"max_tokens,omitempty"` // of one reply; 0 = the model's limit
	Condense  int    `json:"condense,omitempty"`   // percent of the window at which older history is summarised; 0 or less = never
	// what the model gets of a file that others changed: StaleTell ("" too) or StaleRead
	Stale     string        `json:"stale,omitempty"`
	ByMode    bool          `json:"by_mode,omitempty"` // no caller chose a provider: the mode's profile is used, if it has one
	Account   string        `json:"account,omitempty"` // the profile whose key is used; "" = the provider's
	Folder    api.FolderID  `json:"folder,omitzero"`   // how other servers of a group recognise the workspace; zero without a group
	Limits    api.RunLimits `json:"limits"`
	Approve   string        `json:"approve,omitempty"`     // ask, read, edits, all
	Allow     []string      `json:"allow,omitempty"`       // command patterns
	Deny      []string      `json:"deny,omitempty"`        // command patterns
	Tools     []string      `json:"allow_tools,omitempty"` // rules of tools and files that need no question
	AskTools  []string      `json:"ask_tools,omitempty"`   // tools that ask under every policy
	DenyTools []string      `json:"deny_tools,omitempty"`  // tools that are refused
}

// Adopted begins a task that another tool made. The originals are blobs; their elements are the task's first
// messages.
type Adopted struct {
	Task      string          `json:"task"`
	Tool      string          `json:"tool"` // roo, cline, zoo, kilo
	Dir       string          `json:"dir"`
	Files     []Original      `json:"files"`
	Item      json.RawMessage `json:"item,omitempty"` // history_item.json as it was
	CreatedAt int64           `json:"created_at"`
	Settings  Settings        `json:"settings"`
}

// Original is one file of another tool, kept byte for byte.
type Original struct {
	Name    string   `json:"name"`
	Blob    string   `json:"blob"`
	Size    int64    `json:"size"`
	History History  `json:"history,omitempty"`
	Spans   []int64  `json:"spans,omitempty"` // offset and length of each element, flat: off0, len0, off1, len1, ...
	Leaf    bool     `json:"leaf,omitempty"`  // kept, but not a history
	Lost    []string `json:"lost,omitempty"`  // what could not be read, in words

	// SpansBlob holds the spans as a JSON array when there are many.
	SpansBlob string `json:"spans_blob,omitempty"`
}

// ForeignImported takes in what another program wrote into the task's folder. Afterwards the histories equal the
// elements of the files, message by message.
type ForeignImported struct {
	Tool    string       `json:"tool,omitempty"`
	History History      `json:"history"`
	Blob    string       `json:"blob"`
	Size    int64        `json:"size"`
	Rows    []ForeignRow `json:"rows"`
	// RowsBlob holds the rows as a JSON array when there are many.
	RowsBlob string `json:"rows_blob,omitempty"`
	// First is the number of the first new message, the others follow; 0 = the next number. With First, the loss of
	// an earlier commit shifts no numbers.
	First uint64          `json:"first,omitempty"`
	Item  json.RawMessage `json:"item,omitempty"`
}

// News returns how many new messages the rows make.
func (e ForeignImported) News() (n uint64) {
	for _, row := range e.Rows {
		if row.Message == 0 {
			n++
		}
	}
	return n
}

// ForeignRow is one element of a foreign file and the message it continues.
type ForeignRow struct {
	Message uint64 `json:"message,omitempty"` // the message that the element is a state of; 0 = a new message
	Off     int64  `json:"off,omitempty"`     // in the blob; only when it is new or changed
	Len     int64  `json:"len,omitempty"`
}

// ForeignRefused keeps a foreign state that was not applied, and the reason.
type ForeignRefused struct {
	Name   string `json:"name"`
	Blob   string `json:"blob,omitempty"`
	Size   int64  `json:"size"`
	Reason string `json:"reason"`
}

// Changed changes settings or labels. Absent members stay as they are; Tags are
// all that the task has from then on.
type Changed struct {
	Title    *string   `json:"title,omitempty"`
	Tags     *[]string `json:"tags,omitempty"`
	Pinned   *bool     `json:"pinned,omitempty"`
	Settings *Settings `json:"settings,omitempty"`

	Access *api.Access `json:"access,omitempty"` // the task was shared, or has a new owner

	// The commit whose change of labels this one undoes or redoes. See Action.
	Undoes uint64 `json:"undoes,omitempty"`
	Redoes uint64 `json:"redoes,omitempty"`
}

// RunQueued records that a run will begin when a slot is free. Its words are in the task's queue of inputs.
type RunQueued struct {
	Run      string   `json:"run"`
	Settings Settings `json:"settings"`
	Yes      bool     `json:"yes,omitempty"` // it continues without further words
	RunChoice
}

// RunStarted begins a run, or continues one that was queued or waited.
type RunStarted struct {
	Run      string   `json:"run"`
	Settings Settings `json:"settings"`
	Head     string   `json:"head,omitempty"` // the workspace's git HEAD
	RunChoice
}

// RunChoice is what the caller of a run chose for that run alone: the task does not keep it.
type RunChoice struct {
	MaxDayMicros  int64  `json:"max_day_micros,omitempty"` // the most that all tasks may cost on one day; 0 = as configured, negative = no limit
	StandIn       string `json:"stand_in,omitempty"`       // a profile or provider in place of the task's, where that is unknown
	NoCheckpoints bool   `json:"no_checkpoints,omitempty"` // it keeps nothing of the files that it changes
}

// RunWaiting records that a run cannot continue without an answer.
type RunWaiting struct {
	Run      string `json:"run"`
	Question string `json:"question"`
	Child    string `json:"child,omitempty"` // the subtask that asks; "" = the run itself asks
	WorkedMS int64  `json:"worked_ms,omitempty"`
}

// RunEnded ends a run. If the run has a time limit, WorkedMS in this and its other events is the time that it had
// worked until then, without the time in which it waited for a user.
type RunEnded struct {
	Run     string `json:"run"`
	Outcome string `json:"outcome"` // completed, failed, cancelled, interrupted, limit, denied
	Reason  string `json:"reason,omitempty"`
	Code    string `json:"code,omitempty"` // the kind of failure or limit, for exit codes

	WorkedMS int64 `json:"worked_ms,omitempty"`
}

// TurnStarted records the intent to ask the model.
type TurnStarted struct {
	Run      string `json:"run"`
	Turn     int    `json:"turn"`    // of this task, from 1
	Request  uint64 `json:"request"` // the api_req_started row
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Messages int    `json:"messages"` // how many are sent
	Bytes    int    `json:"bytes"`    // of their content
}

// TurnFailed records an attempt that brought no reply.
type TurnFailed struct {
	Run    string `json:"run"`
	Turn   int    `json:"turn"`
	Kind   string `json:"kind"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error"`
	WaitMS int64  `json:"wait_ms,omitempty"`

	// Until is when the next request goes to the provider, in Unix milliseconds. It is set only for a wait of which
	// the person is notified: a used-up quota.
	Until int64 `json:"until,omitempty"`

	// ReasoningTo is the server that refused the request because the reasoning of earlier replies was missing. Later
	// requests send it to that server.
	ReasoningTo string `json:"reasoning_to,omitempty"`
}

// MessageWithheld records that a part of a stored message is not sent to a provider any more, because the provider
// refused it. The stored message does not change.
type MessageWithheld struct {
	Run      string `json:"run"`
	Message  uint64 `json:"message"`
	Block    int    `json:"block"`            // block of its content, from 0; -1 = the whole message
	Images   bool   `json:"images,omitempty"` // only the images in that block, which is a tool's result
	Provider string `json:"provider"`         // the provider that refused it; requests to others still send it
	What     string `json:"what"`             // a description of it
	Reason   string `json:"reason,omitempty"` // the provider's words
}

// TurnEnded ends a turn: the reply is stored.
type TurnEnded struct {
	Run        string `json:"run"`
	Turn       int    `json:"turn"`
	StopReason string `json:"stop_reason"`
	WorkedMS   int64  `json:"worked_ms,omitempty"` // as in RunEnded

	// ReasoningFrom is the server whose reply brought reasoning_content: later requests must send it the reasoning of
	// earlier replies.
	ReasoningFrom string `json:"reasoning_from,omitempty"`
}

// ToolStarted records the intent to run a tool's body.
type ToolStarted struct {
	Call     string    `json:"call"` // the model's id of the call
	Name     string    `json:"name"`
	Replay   string    `json:"replay"` // again, inspect, never
	Message  uint64    `json:"message,omitempty"`
	Approval *Approval `json:"approval,omitempty"`

	// Before has the hash of each file that the call will replace, "" for no file. After a crash it distinguishes a
	// write that did not happen from one whose outcome is unknown. After a blank, a second hash is that of the
	// intended content, "" for no file.
	Before map[string]string `json:"before,omitempty"`
}

// ToolProcess names the process group of a running command.
type ToolProcess struct {
	Call    string `json:"call"`
	PGID    int    `json:"pgid"`
	Started int64  `json:"started"`
	Boot    string `json:"boot"`
	Mark    string `json:"mark,omitempty"` // in the environment of every process that the command started
}

// ToolFinished records a tool's outcome. Result is the tool_result block for the model.
type ToolFinished struct {
	Call     string          `json:"call"`
	Name     string          `json:"name"`
	Outcome  string          `json:"outcome"` // ok, error, denied, cancelled, unknown
	Exit     *int            `json:"exit,omitempty"`
	Output   string          `json:"output,omitempty"` // blob with a command's full output
	Size     int64           `json:"size,omitempty"`
	Artifact string          `json:"artifact,omitempty"` // its name under command-output/
	Approval *Approval       `json:"approval,omitempty"`
	Blob     string          `json:"result_blob,omitempty"` // holds the result when it is large
	Result   json.RawMessage `json:"result" codec:"-"`      // Call.Result reads it from the log
}

// Approval records who allowed or refused a call, and by which rule.
type Approval struct {
	State    string `json:"state"`          // allowed, denied, asked
	By       string `json:"by"`             // policy, user
	Via      string `json:"via,omitempty"`  // where a user's answer came from: terminal, resume, ...
	Kind     string `json:"kind,omitempty"` // what Rule is: mode, allow or deny (a command pattern), rule (of tools), hook (its name)
	Rule     string `json:"rule,omitempty"` // the rule that decided, or that required a question
	Feedback string `json:"feedback,omitempty"`
}

// InputQueued is input that was acknowledged and not used yet.
type InputQueued struct {
	Input  string   `json:"input"`
	Text   string   `json:"text"`
	Images []string `json:"images,omitempty"` // data URLs
	Todos  string   `json:"todos,omitempty"`  // the checklist that comes with a new task's words

	// ImagesBlob holds the images, as a JSON array, when they are too large for a line. Images is empty then, and
	// ImageCount is their number. See Load.
	ImagesBlob string `json:"images_blob,omitempty"`
	ImageCount int    `json:"image_count,omitempty"`

	// By names the front door through which a user sent these words while a run worked. The words get their row when
	// a run takes them. "" = they have a row already.
	By string `json:"by,omitempty"`
}

// InputTaken records that queued input went into the histories, or that a user withdrew it.
type InputTaken struct {
	Input   string `json:"input"`
	Dropped bool   `json:"dropped,omitempty"` // a user withdrew it: no history has it
}

// UsageChanged records what one request cost. No event takes it back, even if its messages are rewound.
type UsageChanged struct {
	Turn       int    `json:"turn"`
	Request    uint64 `json:"request,omitempty"`
	Provider   string `json:"provider"`
	Model      string `json:"model"`
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	CacheRead  int64  `json:"cache_read,omitempty"`
	CacheWrite int64  `json:"cache_write,omitempty"`
	CostMicros *int64 `json:"cost_micros"` // null = the price is unknown
	Prices     string `json:"prices,omitempty"`

	// More: this record adds to an earlier one of the same request, which held what the reply had used while it
	// streamed.
	More bool `json:"more,omitempty"`
}

// FileChanged records what the model knows of a file.
type FileChanged struct {
	Path   string `json:"path"`
	Source string `json:"source"`         // read_tool, roo_edited, user_edited, file_mentioned
	By     string `json:"by,omitempty"`   // for user_edited: "command" or "subtask", while one ran; "restore"; "other"
	Task   string `json:"task,omitempty"` // of By "other": the other task that is known to have done it
	Hash   string `json:"hash,omitempty"`
	Size   int64  `json:"size,omitempty"`
	MTime  int64  `json:"mtime,omitempty"`
	CTime  int64  `json:"ctime,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
	Device uint64 `json:"device,omitempty"`
}

// SubtaskStarted records that a call is about to start a child, whose id follows from the call. So a run may look for
// the child, or make it, any number of times.
type SubtaskStarted struct {
	Child   string `json:"child"`
	Call    string `json:"call,omitempty"`
	Message uint64 `json:"message,omitempty"` // the reply with the call: another reply may use the same call id
	Mode    string `json:"mode,omitempty"`
	Title   string `json:"title,omitempty"`  // its subject, in one line
	Remark  string `json:"remark,omitempty"` // the user's remark with their yes: it is for the child
}

// SubtaskEnded is a child's end, committed in the parent's journal together with the
// outcome of the call that started it.
type SubtaskEnded struct {
	Child   string `json:"child"`
	Outcome string `json:"outcome,omitempty"` // completed, or abandoned: the parent continues without it
	Result  string `json:"result,omitempty"`  // a short form for lists; the call's outcome holds the whole result
}

// EpochOpened is the journal's own event: a new owner.
type EpochOpened struct {
	Owner json.RawMessage `json:"owner,omitempty"`
}

// Unknown is an event of a type this version does not know. It is kept.
type Unknown struct {
	Type string
	Raw  json.RawMessage
}

// EventType returns the name in the journal and in the event stream.
func (Created) EventType() string         { return "task.created" }
func (Adopted) EventType() string         { return "task.adopted" }
func (ForeignImported) EventType() string { return "foreign.imported" }
func (ForeignRefused) EventType() string  { return "foreign.refused" }
func (Changed) EventType() string         { return "task.changed" }
func (RunQueued) EventType() string       { return "run.queued" }
func (RunStarted) EventType() string      { return "run.started" }
func (RunWaiting) EventType() string      { return "run.waiting" }
func (RunEnded) EventType() string        { return "run.ended" }
func (TurnStarted) EventType() string     { return "turn.started" }
func (TurnFailed) EventType() string      { return "turn.failed" }
func (TurnEnded) EventType() string       { return "turn.ended" }
func (MessageWithheld) EventType() string { return "message.withheld" }
func (ToolStarted) EventType() string     { return "tool.started" }
func (ToolProcess) EventType() string     { return "tool.process" }
func (ToolFinished) EventType() string    { return "tool.finished" }
func (InputQueued) EventType() string     { return "input.queued" }
func (InputTaken) EventType() string      { return "input.taken" }
func (UsageChanged) EventType() string    { return "usage.changed" }
func (FileChanged) EventType() string     { return "file.changed" }
func (SubtaskStarted) EventType() string  { return "subtask.started" }
func (SubtaskEnded) EventType() string    { return "subtask.ended" }
func (EpochOpened) EventType() string     { return "epoch.opened" }
func (u Unknown) EventType() string       { return u.Type }

// encodePlain encodes an event with encoding/json. Raw bytes of messages never pass through it, because it would change
// their spelling.
func encodePlain(e Event) ([]byte, error) {
	body, err := api.Encode(e)
	return bytes.TrimSuffix(body, []byte("\n")), api.Failed(err, "encode %s", e.EventType())
}

// withType puts the type first, where it is easy to see in the log.
func withType(name string, object []byte) json.RawMessage {
	head := `{"type":"` + name + `"`
	if len(object) > 2 {
		head += ","
	}
	return append([]byte(head), object[1:]...)
}

// HistoryCondensed records that a summary replaces older messages in what is sent. The summary and the row that shows
// it are in the same commit. The event does not change the messages themselves: Raw adds Roo's tag to them as long as
// the summary is part of the history. So a rewind over the summary, or an undo, brings the messages back without
// further events, and condensing a long task writes little.
type HistoryCondensed struct {
	Run      string  `json:"run,omitempty"`
	Condense string  `json:"condense,omitempty"` // the summary's condenseId
	Summary  uint64  `json:"summary,omitempty"`  // the message that holds it
	Row      uint64  `json:"row,omitempty"`      // the person's row
	Covers   []Run64 `json:"covers,omitempty"`   // messages of the API history
	Messages int     `json:"messages,omitempty"` // how many are covered
	Before   int64   `json:"tokens_before,omitempty"`
	After    int64   `json:"tokens_after,omitempty"` // estimated

	// The commit whose summary this event takes back or restores. All other members are empty then.
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

// Run64 is a range of numbers, both ends included. A range of messages covers those of one history.
type Run64 [2]uint64

// Ranges returns ascending numbers as ranges.
func Ranges(numbers []uint64) (out []Run64) {
	for _, at := range numbers {
		if n := len(out) - 1; n >= 0 && out[n][1]+1 == at {
			out[n][1] = at
			continue
		}
		out = append(out, Run64{at, at})
	}
	return out
}

// numbersIn returns the numbers of ranges, up to most: the reverse of Ranges.
func numbersIn(runs []Run64, most int) (out []uint64) {
	for _, r := range runs {
		for at := max(r[0], 1); at <= r[1] && at <= uint64(most) && len(out) < most; at++ {
			out = append(out, at)
		}
	}
	return out
}

func (HistoryTruncated) EventType() string { return "history.truncated" }
func (HistoryCondensed) EventType() string { return "history.condensed" }

// Rewound moves the head of both histories in one commit. The messages that it hides stay on a branch, which has the
// number of this commit: undo returns to it, and a fork can start from it.
type Rewound struct {
	Why  string  `json:"why"`            // rewind, edit, remove, branch; fork, where a new task leaves the rest out
	By   string  `json:"tool,omitempty"` // the other program that did it, when this event takes its change in
	To   uint64  `json:"to,omitempty"`   // the first hidden row
	Hide []Run64 `json:"hide,omitempty"` // the hidden messages of both histories, in order

	// Lift names hidden summaries and markers: the messages that they covered are sent again.
	Lift []string `json:"lift,omitempty"`
	// Calls are calls of replies that stay, whose outcomes came later and do not count any more. A call that had
	// started by then has an unknown outcome, because its effects happened.
	Calls     []string `json:"calls,omitempty"`
	Questions []string `json:"questions,omitempty"`
	Inputs    []string `json:"inputs,omitempty"`
	Files     uint64   `json:"files,omitempty"` // file records from this commit on do not count any more; 0 = all of them count

	// Unmatched is the number of another program's messages that match no row: whether these are hidden or stay is a
	// guess.
	Unmatched int `json:"unmatched,omitempty"`

	// Branch is the branch that becomes the head. All other members are empty then.
	Branch uint64 `json:"branch,omitempty"`
}

// Gone is how many messages of each history a move of the head hid. It is for display.
type Gone struct{ UI, API int }

// Undone undoes or redoes a move of the head, which it names by its commit. Afterwards everything is exactly as
// before, or after, that move.
type Undone struct {
	Undoes uint64 `json:"undoes,omitempty"`
	Redoes uint64 `json:"redoes,omitempty"`
}

// EventType returns the name in the journal and in the event stream.
func (Rewound) EventType() string { return "history.rewound" }

func (Undone) EventType() string { return "history.undone" }

// Cover is a summary or a marker, and the number of messages that it replaces.
type Cover struct {
	Kind     string // Condense, Truncate
	ID       string // condenseId, truncationId
	Message  uint64 // the summary, the marker
	Row      uint64
	Seq      uint64 // the commit that made it
	At       int64  // Unix milliseconds
	Messages int
	Before   int64 // tokens of the next request, estimated
	After    int64

	// While the cover is undone: the messages that followed its message and its row; 0 = the end.
	Off     bool   `json:",omitempty"`
	Next    uint64 `json:",omitempty"`
	NextRow uint64 `json:",omitempty"`
}

// key returns the tag of the messages that a cover replaces.
func (c *Cover) key() string {
	if c.Kind == api.ActionTruncate {
		return "truncationParent"
	}
	return "condenseParent"
}

// Forked begins a task with the history of another one: all commits of its log before this event. The two tasks share
// those bytes and nothing else.
type Forked struct {
	Task      string   `json:"task"`
	From      string   `json:"from"`             // the task that it is a fork of
	Source    string   `json:"source"`           // where the other task is stored
	Seq       uint64   `json:"from_seq"`         // the newest shared commit
	Branch    uint64   `json:"branch,omitempty"` // the branch that it starts from; 0 = the head
	At        int      `json:"at,omitempty"`     // the last row that it shows, by its number
	CreatedAt int64    `json:"created_at"`       // Unix milliseconds
	Origin    string   `json:"origin,omitempty"`
	Title     string   `json:"title,omitempty"`
	Metadata  string   `json:"metadata,omitempty"` // blob with another tool's records about files (task_metadata.json)
	Settings  Settings `json:"settings"`
	Person    string   `json:"person,omitempty"` // the person who forked it, and owns it; "" without accounts
}

// EventType returns the name in the journal and in the event stream.
func (Forked) EventType() string { return "task.forked" }

// Received records that everything before it came from somewhere else: an archive, another place, a program that did
// not sign its commits, a change of the log by another program, another person of the same store. It ends all that was
// open: the run, the queue, questions, answers that no call has used, grants and calls without an outcome. It adds no
// message, and the histories do not change.
type Received struct {
	From     string   `json:"from"`           // one of the constants below
	Had      Settings `json:"had"`            // the settings in the log before, for display
	Settings Settings `json:"settings"`       // the settings that apply from here on
	Kept     bool     `json:"kept,omitempty"` // the user trusted the log: nothing ends

	// Stores are the names here of the stores that the checkpoints before it name: an archive brought their contents.
	Stores map[string]string `json:"stores,omitempty"`

	// Person is the one for whom the settings apply from here on; "" without accounts. The owner of the task does not
	// change.
	Person string `json:"person,omitempty"`
}

// Where a log came from.
const (
	FromImport    = "import"    // an archive or another root
	FromUnsigned  = "unsigned"  // a program that did not sign
	FromElsewhere = "elsewhere" // signed with a key that is not known in this place
	FromAltered   = "altered"   // its commits do not match, or its end is missing
	FromPerson    = "person"    // another person of the same store gave its orders
)

// EventType returns the name in the journal and in the event stream.
func (Received) EventType() string { return "task.received" }

// CheckpointSaved is a recorded state of the files that the agent, or a command that it ran, changed. Files holds
// only those whose state differs from the previous checkpoint.
type CheckpointSaved struct {
	Number  int              `json:"checkpoint"` // 1, 2, ... within the task; users name it c1, c2, ...
	Reason  string           `json:"reason"`     // before, command, doubt, turn, others, safety, manual, restored
	Run     string           `json:"run,omitempty"`
	Call    string           `json:"call,omitempty"`
	Message uint64           `json:"message,omitempty"` // the newest message of the API history at that moment
	Title   string           `json:"title,omitempty"`   // named after the files: "a.go, b.go and 3 more"
	Commit  string           `json:"commit,omitempty"`  // in the workspace's object store
	Store   string           `json:"store,omitempty"`   // the object store's folder, so that a moved workspace is noticed
	Files   []CheckpointFile `json:"files,omitempty"`
	Unkept  int              `json:"unkept,omitempty"` // files whose content was too large to keep
}

// CheckpointFile is one path in a checkpoint. Was is what the path held before the agent or its command changed it;
// nil when it is not known to differ from the previous checkpoint.
type CheckpointFile struct {
	Path string           `json:"path"`
	Was  *api.FileVersion `json:"was,omitempty"`
	Now  api.FileVersion  `json:"now"`
}

// RestoreFile is one file that a restore changes.
type RestoreFile struct {
	Path string          `json:"path"`
	From api.FileVersion `json:"from"`
	To   api.FileVersion `json:"to"`
	How  string          `json:"how,omitempty"` // restore, merge, overwrite
}

// RestoreBegun is the intent to put files back. Until its RestoreEnded the task is
// restoring, and nothing runs.
type RestoreBegun struct {
	Restore string        `json:"restore"`
	To      int           `json:"to"`               // the checkpoint; 0 = the state before anything was changed
	Safety  int           `json:"safety,omitempty"` // the checkpoint of the replaced files
	Files   []RestoreFile `json:"files,omitempty"`
	Kept    []string      `json:"kept,omitempty"` // conflicts that stay as they are

	// Rewind is the line of the event that moves the histories with the files (see Encode: a Rewound or an Undone),
	// resolved, so that any owner that finishes the restore does the same.
	Rewind json.RawMessage `json:"rewind,omitempty"`

	// The commit of the restore that this restore undoes or redoes. See Action.
	Undoes uint64 `json:"undoes,omitempty"`
	Redoes uint64 `json:"redoes,omitempty"`
}

// RestoreEnded is the outcome of a restore.
type RestoreEnded struct {
	Restore string   `json:"restore"`
	Begun   uint64   `json:"begun,omitempty"` // the commit of the intent
	Outcome string   `json:"outcome"`         // done, rolled_back
	Files   int      `json:"files"`           // the number of files that it changed
	Left    []string `json:"left,omitempty"`  // files that others changed during the restore; the restore left them as they are
	Undoes  uint64   `json:"undoes,omitempty"`
	Redoes  uint64   `json:"redoes,omitempty"`
}

// EventType returns the name in the journal and in the event stream.
func (CheckpointSaved) EventType() string { return "checkpoint.saved" }

func (RestoreBegun) EventType() string { return "checkpoint.restoring" }

func (RestoreEnded) EventType() string { return "checkpoint.restored" }
