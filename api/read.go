// Package api holds the documents that every front door reads and writes: tasks, runs, questions, histories,
// checkpoints, searches, spending. The command line prints them with --json, the server answers with them, and the
// client decodes them, so the three cannot differ. A document is plain data: it names no package that makes it, opens
// nothing, and refers to tasks, runs and messages by text.
//
// Times are RFC 3339 in UTC, or Unix milliseconds where a member is called ts. Money is a decimal string of US dollars;
// null means that the cost is unknown.
package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/roost-dev/roost/money"
)

// FileRecord is what a task recorded about a file at one moment, or a checkpoint that holds the file.
type FileRecord struct {
	Seq        uint64  `json:"seq,omitempty"` // the commit; 0 for what another tool recorded
	At         *string `json:"at"`
	Source     string  `json:"source"` // "checkpoint": the record is from a checkpoint
	By         *string `json:"by"`
	Task       string  `json:"task,omitempty"` // the other task that changed it
	Size       *int64  `json:"size"`
	Hash       *string `json:"hash"`
	Rewound    bool    `json:"rewound,omitempty"`    // the record belongs to rewound messages
	Checkpoint int     `json:"checkpoint,omitempty"` // the checkpoint's number
	Reason     string  `json:"reason,omitempty"`     // of the checkpoint
}

// KnownFile is a file that the model of a task knows.
type KnownFile struct {
	Path     string  `json:"path"`
	State    string  `json:"state"`  // fresh, changed, missing
	Source   string  `json:"source"` // of the newest record
	ReadAt   *string `json:"read_at"`
	EditedAt *string `json:"edited_at"`
	UserAt   *string `json:"user_edited_at"`
	TS       int64   `json:"ts"` // of the newest record, Unix milliseconds
	// the author of the last change: agent, restore, other; command or subtask: the file changed while such a one ran
	By       *string      `json:"changed_by"`
	Task     string       `json:"changed_by_task,omitempty"` // the other task that changed it, if known
	Size     *int64       `json:"size"`                      // as the model last saw it
	Hash     *string      `json:"hash"`
	NowSize  *int64       `json:"now_size"`
	NowHash  *string      `json:"now_hash"`
	Inferred []string     `json:"inferred"` // members that are inferred from times, because no content was recorded
	History  []FileRecord `json:"history,omitempty"`
}

// Part is the place of a document's items in a whole list.
type Part struct {
	Total  int  `json:"total"`       // items of the list
	Before *int `json:"next_before"` // the parameter before for earlier items; null at the start
	After  *int `json:"next_after"`  // the parameter after for later items; null at the end
}

// Lines are messages of a task as a terminal shows them, before colours and wrapping.
type Lines struct {
	Task  string         `json:"task_id"`
	Items []ShownMessage `json:"items"`
	Part
	StandIn   string   `json:"stand_in"`  // why this history was reconstructed from the other one; "" = it was not
	Notes     []string `json:"notes"`     // repairs, and unreadable messages
	Questions []string `json:"questions"` // the open ones
}

// ShownMessage is one message in lines.
type ShownMessage struct {
	Number int    `json:"number"` // from 1
	Lines  []Line `json:"lines"`
}

// Line is one line and its role.
type Line struct {
	Style string `json:"style"`
	Text  string `json:"text"`
}

// Fragments are messages of a task as HTML that holds only text: each is one li element, ui-N or api-N by its id.
type Fragments struct {
	Task    string     `json:"task_id"`
	History string     `json:"history"` // ui, api
	Items   []Fragment `json:"items"`
	Part
	StandIn string   `json:"stand_in"` // why this history was reconstructed from the other one; "" = it was not
	Notes   []string `json:"notes"`    // repairs, and unreadable messages
}

// Fragment is one message as HTML.
type Fragment struct {
	Number int    `json:"number"` // from 1
	HTML   string `json:"html"`
}

// FilterValues are the values for filters that tasks have, in each list the value of the most tasks first.
type FilterValues struct {
	Workspaces []FilterValue `json:"workspaces"`
	Sources    []FilterValue `json:"sources"`
	Statuses   []FilterValue `json:"statuses"`
	Models     []FilterValue `json:"models"`
	Tags       []FilterValue `json:"tags"`
	Tools      []FilterValue `json:"tools"` // the called ones; empty unless the request asks for them
}

// FilterValue is a value that some tasks have.
type FilterValue struct {
	Value string `json:"value"`
	Tasks int    `json:"tasks"`
}

// Alignment is the next request beside the conversation that it comes from. Messages that the request leaves out keep their
// place.
type Alignment struct {
	Task  string           `json:"task_id"`
	Items []AlignedMessage `json:"items"`
	Part
	Notes []string `json:"notes"`
}

// AlignedMessage is one message of the next request, or neighbours that the request leaves out.
type AlignedMessage struct {
	Number int `json:"number"` // of the item, from 1
	// State shows how the request has the stored messages: sent (unchanged), changed, summary (of others), condensed (a
	// summary replaces them), left_out, added (made for the request, without a stored message).
	State  string   `json:"state"`
	Sent   int      `json:"sent"`    // the number of the request's message, as in GET .../history?view=effective; 0 = none
	Stored []int    `json:"stored"`  // the numbers of the messages of the model's history that it comes from
	From   int      `json:"ui_from"` // the first message of the conversation that belongs to it; 0 = none
	To     int      `json:"ui_to"`   // the last one
	Why    []string `json:"why"`     // the changes, or why the messages are left out
}

// Prompts lists the messages that a person wrote in a task, each cut to its beginning.
type Prompts struct {
	Task  string   `json:"task_id"`
	Items []Prompt `json:"items"` // the newest prompts, in the order of their times
	Total int      `json:"total"`
}

// Prompt is one message that a person wrote.
type Prompt struct {
	Number int    `json:"number"` // of the message
	Text   string `json:"text"`   // one line
}

// Commits are commits of a task's journal.
type Commits struct {
	Task  string   `json:"task_id"`
	Items []Commit `json:"items"`
	Part
}

// Commit is a journal line as --json shows it.
type Commit struct {
	Seq    uint64            `json:"seq"`
	Epoch  uint64            `json:"epoch"`
	At     string            `json:"at,omitempty"` // RFC 3339 in UTC, milliseconds
	By     string            `json:"by,omitempty"`
	Events []json.RawMessage `json:"events,omitempty"`
	Damage string            `json:"damage,omitempty"`
}

// ContextUse lists the parts of a task's next request. Unknown numbers of tokens are null.
type ContextUse struct {
	Task     string        `json:"task_id"`
	Model    string        `json:"model"`
	Window   *int64        `json:"window"`
	Reply    *int64        `json:"reply"` // of the window, kept free for the reply
	Used     int64         `json:"used"`
	Free     *int64        `json:"free"`
	Counted  bool          `json:"counted"` // by the provider; else estimated
	Messages int           `json:"messages"`
	Parts    []ContextPart `json:"parts"`
	AsIf     *string       `json:"as_if"` // the profile that replaces the task's own, which is unknown here

	Unknown *UnknownProfile `json:"unknown_profile,omitempty"`
}

// UnknownProfile is a profile that a task names and the settings do not have.
type UnknownProfile struct {
	Name   string `json:"name"`
	Source string `json:"source"` // the task's: the setting source_profiles.SOURCE names a profile for all of its tasks
}

// ContextPart is a part of a request.
type ContextPart struct {
	Name   string `json:"name"` // system, tools, summary, history, results, files, images
	Tokens int64  `json:"tokens"`
}

// Exported is the report of an export, which follows the file.
type Exported struct {
	Masked  int           `json:"masked"` // secrets; each occurrence counts
	Damaged []Damage      `json:"damaged"`
	Unread  []Unread      `json:"unread"`
	Skipped []string      `json:"skipped"` // files that could not be read, or are links or devices
	Failed  []NotExported `json:"failed,omitempty"`
}

// Filled makes absent lists empty ones: JSON shows [] and not null.
func (e Exported) Filled() Exported {
	e.Damaged = append([]Damage{}, e.Damaged...)
	e.Unread = append([]Unread{}, e.Unread...)
	e.Skipped = append([]string{}, e.Skipped...)
	return e
}

// NotExported is a task that an archive lacks.
type NotExported struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	Problem string `json:"problem"`
}

// Unread is a message that could not be read.
type Unread struct {
	History string `json:"history"` // ui or api
	Number  int    `json:"number"`  // from 1
	Problem string `json:"problem"`
}

// Notice is a record about files, with its position in the conversation.
type Notice struct {
	Behind     int            `json:"behind"` // the number of the message that it follows
	At         *string        `json:"at"`
	Kind       string         `json:"kind"` // files_changed, checkpoint
	Text       string         `json:"text"`
	Files      []FileOfNotice `json:"files,omitempty"`      // of files_changed
	Checkpoint int            `json:"checkpoint,omitempty"` // its number
	Reason     string         `json:"reason,omitempty"`     // of the checkpoint
}

// FileOfNotice is a file that changed since the model saw it.
type FileOfNotice struct {
	Path string `json:"path"`
	By   string `json:"by,omitempty"`   // command, subtask (while one ran), restore, other
	Task string `json:"task,omitempty"` // the other task that changed it
	Gone bool   `json:"gone,omitempty"`
}

// Family is a task with its subtasks, each after its parent.
type Family struct {
	Tasks  []Summary
	Depths []int
}

// DepthsOf returns the depth of each task below its topmost ancestor among items; in items, parents come before their
// subtasks. Damaged folders may name each other as parents: the first task of such a circle counts as having no
// parent.
func DepthsOf(items []Summary) []int {
	out, depths := make([]int, len(items)), map[string]int{}
	for i, t := range items {
		if above, listed := depths[t.ParentID]; listed {
			out[i] = above + 1
		}
		depths[t.ID] = out[i]
	}
	return out
}

// CostsBelow returns the cost of each task of a tree together with its subtasks; nil for a task without subtasks, or
// if none of the costs is known.
func CostsBelow(tasks []Summary, depths []int) []*money.USD {
	out := make([]*money.USD, len(tasks))
	for i := range tasks {
		if i+1 == len(tasks) || depths[i+1] <= depths[i] {
			continue
		}
		sum := tasks[i].Usage
		for j := i + 1; j < len(tasks) && depths[j] > depths[i]; j++ {
			sum = sum.Plus(tasks[j].Usage)
		}
		out[i] = sum.Cost
	}
	return out
}

// Branch is a task and its subtasks as JSON.
type Branch struct {
	Task     Summary    `json:"task"`
	Cost     *money.USD `json:"cost"` // of the task and its subtasks; null if none is known
	Children []Branch   `json:"children"`
}

// Branch returns the family as one document.
func (f Family) Branch() Branch {
	all := CostsBelow(f.Tasks, f.Depths)
	b := Branch{Task: f.Tasks[0], Cost: cmp.Or(all[0], f.Tasks[0].Usage.Cost), Children: []Branch{}}
	for i := 1; i < len(f.Tasks); {
		to := i + 1
		for to < len(f.Tasks) && f.Depths[to] > f.Depths[i] {
			to++
		}
		b.Children = append(b.Children, Family{f.Tasks[i:to], f.Depths[i:to]}.Branch())
		i = to
	}
	return b
}

// Name is the id of a task and its folder.
type Name struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Path   string `json:"path"`

	Journal string `json:"journal,omitempty"` // the folder of its journal, if that is another folder
}

// Names are the ids of all tasks, from which short names are derived.
type Names struct {
	Items []Name `json:"items"`
}

// Window is a part of a history. Items are the stored bytes.
type Window struct {
	Task    string            `json:"task_id"`
	History string            `json:"history"` // ui, api
	Items   []json.RawMessage `json:"items"`
	Numbers []int             `json:"numbers"` // of the items, as show prints them
	Part
	Notes []string `json:"notes"` // differences from the stored history, and unreadable messages
	// records about files, each after one of these messages; none for the model's history
	Notices []Notice `json:"notices"`
}

// KnownFiles are the files that the model of a task knows.
type KnownFiles struct {
	Items []KnownFile `json:"items"`
	Task  string      `json:"task_id"`
}

// Hit is a message that holds a query. Its JSON has only those members of the task that identify it.
type Hit struct {
	Task    Summary `json:"task"`
	History string  `json:"history"` // ui or api
	Number  int     `json:"number"`  // its place in the visible history, from 1
	TS      int64   `json:"ts"`      // Unix milliseconds, 0 when the message has none
	Snippet string  `json:"snippet"` // one line
	Kind    string  `json:"kind"`
	Tool    string  `json:"tool,omitempty"` // the tool that the message calls or answers, as far as it is known
	Also    []Twin  `json:"also,omitempty"` // messages of the other history about the same event
}

// Twin is a message of the other history about the event of a hit.
type Twin struct {
	History string `json:"history"`
	Number  int    `json:"number"`
	Kind    string `json:"kind"`
}

// hit is the JSON of a Hit. The JSON of the whole task would be many times as long as the hit.
type hit struct {
	Task hitTask `json:"task"`
	restOfHit
}

type restOfHit Hit // without its method, and with Task hidden by that of hit

type hitTask struct {
	ID        string  `json:"id"`
	Source    string  `json:"source"`
	Title     string  `json:"title"`
	Workspace string  `json:"workspace"`
	Status    string  `json:"status"`
	UpdatedAt *string `json:"updated_at"`
	TS        int64   `json:"ts"`
}

// Form returns a value with the shape of a Hit's JSON, also for the OpenAPI document.
func (h Hit) Form() any {
	t := h.Task
	return hit{hitTask{t.ID, t.Source, t.Title, t.Workspace, t.Status, t.UpdatedAt, t.TS}, restOfHit(h)}
}

// MarshalJSON writes the shape that the contract defines. Decoding needs no counterpart: absent members stay empty.
func (h Hit) MarshalJSON() ([]byte, error) { return json.Marshal(h.Form()) }

// The two histories of a task.
const (
	UI  = "ui"  // what the user saw
	API = "api" // what the model saw
)

// Scopes are the places to which a search can be narrowed: the two histories, inputs and results of tools, and paths
// of files.
var Scopes = []string{UI, API, "tool", "path"}

// SourceState describes the contents of one storage.
type SourceState struct {
	Name    string `json:"name"`
	Tool    string `json:"tool"`
	Path    string `json:"path"`
	State   string `json:"state"` // readable, partly damaged, or "unreachable: REASON"; never empty for that reason
	Tasks   int    `json:"tasks"`
	Damaged int    `json:"damaged"`
	Empty   int    `json:"empty"`
	Bytes   int64  `json:"bytes"` // of the tasks' files

	// Problem describes damage of the tool's own index of its tasks. Roost lists all tasks without the index, but
	// details that only the index holds may be missing.
	Problem string `json:"problem,omitempty"`

	Folder string `json:"-"` // the folder of task folders
}

// The states of a source. An unreachable one has a reason behind the colon, and never counts as empty: its tasks are
// unknown, not gone.
const (
	SourceReadable      = "readable"
	SourcePartlyDamaged = "partly damaged"
	SourceUnreachable   = "unreachable: "
)

// Unreachable reports whether the source could not be read.
func (src SourceState) Unreachable() bool { return strings.HasPrefix(src.State, SourceUnreachable) }

// TaskFilter narrows and orders a list of tasks. Zero members do not filter.
type TaskFilter struct {
	Workspace string // the folder, by any of its paths
	Status    string
	Source    string // a source's or a tool's name
	Tag       string // one that the user gave it
	Words     string // of the title or id
	Model     string // words of the model's name
	MinCost   *money.USD
	MaxCost   *money.USD // a task of unknown cost does not pass
	Since     int64      // Unix milliseconds
	Until     int64
	Sort      string // newest (default; pinned ones first), oldest, cost, tokens
	Damaged   bool   // only damaged ones
	Empty     bool   // also folders without message bytes
	Tree      bool   // subtasks behind their parents; a page holds whole families, so it may hold more tasks than Limit
	Limit     int    // 0 = all
	Cursor    string // continues behind the last task of the page that returned it
}

// Query returns the filter as the parameters of a list or a search, without Limit.
func (f TaskFilter) Query() url.Values {
	q := url.Values{}
	for name, text := range map[string]string{
		"workspace": f.Workspace, "status": f.Status, "source": f.Source, "tag": f.Tag, "query": f.Words, "model": f.Model,
		"sort": f.Sort, "cursor": f.Cursor, "min_cost": costText(f.MinCost), "max_cost": costText(f.MaxCost),
		"since": timeText(f.Since), "until": timeText(f.Until),
	} {
		if text != "" {
			q.Set(name, text)
		}
	}
	for name, on := range map[string]bool{"tree": f.Tree, "damaged": f.Damaged, "empty": f.Empty} {
		if on {
			q.Set(name, "true")
		}
	}
	return q
}

func costText(usd *money.USD) string {
	if usd == nil {
		return ""
	}
	return usd.String()
}

func timeText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return Stamp(ms)
}

// SearchQuery is a search for messages.
type SearchQuery struct {
	Text   string   // words, or phrases in double quotes; a hit holds all of them
	Task   string   // only this task, by any name that finds it; "" = all
	In     []string // Scopes; none = everywhere
	Filter TaskFilter
	Tool   string // only tasks in which this tool was called
	File   string // only tasks in which a tool got a path that contains this
	Each   int    // at most this many hits of one task, 0 = all; Found then counts all hits
	Tasks  int    // at most this many tasks on a page, 0 = any number
	// Patience bounds the time in which a search also adds to the index what it had to read; 0 = no bound. What it does not
	// add is read again the next time.
	Patience time.Duration
}

// The orders of a search.
const (
	SortBest = "best" // tasks whose title holds the words first, then by their best hits
	SortNew  = "new"  // the task that changed last first
)

// QueryTerms returns the terms of a query in lower case, each once: words between blanks, or a phrase in double
// quotes.
func QueryTerms(text string) (terms []string) {
	text = strings.ToLower(text)
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		var term string
		end := -1
		if rest[0] == '"' {
			end = strings.IndexByte(rest[1:], '"')
		}
		if end > 0 {
			term, rest = rest[1:1+end], rest[2+end:]
		} else if i := strings.IndexFunc(rest, unicode.IsSpace); i >= 0 {
			term, rest = rest[:i], rest[i:]
		} else {
			term, rest = rest, ""
		}
		if !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	return terms
}

// OlderRun is the body of the older call.
type OlderRun struct {
	Text      string `json:"task"`                       // what to do
	Mode      string `json:"mode,omitempty"`             //
	Task      string `json:"taskId,omitempty"`           // the task to continue; with restartTask
	Restart   bool   `json:"restartTask,omitempty"`      //
	Verbose   bool   `json:"verbose,omitempty"`          // also send reasoning and the output of commands
	IdleMS    int64  `json:"slidingTimeoutMs,omitempty"` // stop when nothing happens for this long; 0 = as the settings have it
	LogPrompt bool   `json:"logSystemPrompt,omitempty"`  // accepted and ignored
	LogModel  bool   `json:"logLlm,omitempty"`           // the same
}

// OlderAnswer is the body of an answer to a question of the older call.
type OlderAnswer struct {
	Answer string `json:"answer"` // the text or number of a suggestion, or other text
}

// OlderChoice is a suggestion.
type OlderChoice struct {
	Answer string `json:"answer"`
}

// OlderQuestion is an open question as the older call shows it.
type OlderQuestion struct {
	ID          string        `json:"id"`
	Job         string        `json:"jobId"`
	Task        string        `json:"taskId"`
	Question    string        `json:"question"`
	Kind        string        `json:"kind"`
	Suggestions []OlderChoice `json:"suggestions"`
	State       string        `json:"state"` // pending
	CreatedAt   string        `json:"createdAt"`
}

// OlderQuestions is a list of open questions of the older call.
type OlderQuestions struct {
	Questions []OlderQuestion `json:"questions"`
	Total     int             `json:"total"`
	Timestamp string          `json:"timestamp"`
}

// OlderAnswered is the reply to an accepted answer.
type OlderAnswered struct {
	Success   bool   `json:"success"`
	Message   string `json:"message"`
	Question  string `json:"questionId"`
	Task      string `json:"taskId"`
	Job       string `json:"jobId"`
	Timestamp string `json:"timestamp"`
}

// OlderFailure is an error of the older call.
type OlderFailure struct {
	Error       string   `json:"error"`
	Message     string   `json:"message"`
	Code        string   `json:"code"`
	Task        *string  `json:"taskId"`
	Suggestions []string `json:"suggestions"`
	Timestamp   string   `json:"timestamp"`
}

// OlderEvent is one line of the older call's stream.
type OlderEvent struct {
	Type        string         `json:"type"`
	Job         string         `json:"jobId"`
	Timestamp   string         `json:"timestamp"`
	Message     string         `json:"message"`
	Text        string         `json:"task,omitempty"`
	Task        string         `json:"taskId"`
	Say         string         `json:"say,omitempty"`
	Question    string         `json:"questionId,omitempty"`
	Kind        string         `json:"kind,omitempty"`
	Suggestions *[]OlderChoice `json:"suggestions,omitempty"`
	Usage       *OlderUsage    `json:"tokenUsage,omitempty"`
	Error       string         `json:"error,omitempty"`
	Outcome     string         `json:"outcome,omitempty"`
	Restart     string         `json:"restartCommand,omitempty"`
}

// OlderUsage is what a task has spent.
type OlderUsage struct {
	In          int64    `json:"totalTokensIn"`
	Out         int64    `json:"totalTokensOut"`
	CacheWrites int64    `json:"totalCacheWrites"`
	CacheReads  int64    `json:"totalCacheReads"`
	Cost        *float64 `json:"totalCost"` // US dollars; null = unknown
}

// Problem is an error for a client: an RFC 9457 object with suggestions.
type Problem struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Status      int      `json:"status"`
	Code        string   `json:"code"` // for programs
	Detail      string   `json:"detail"`
	Instance    string   `json:"instance,omitempty"` // the path of the request
	Request     string   `json:"request_id,omitempty"`
	Task        string   `json:"task_id,omitempty"`
	Suggestions []string `json:"suggestions"`
	Retryable   bool     `json:"retryable"`
	Errors      []Wrong  `json:"errors,omitempty"`

	Answer  *Answered       `json:"answer,omitempty"`          // the first answer to a question
	Model   string          `json:"model,omitempty"`           // of other_model: the one that would answer
	Unknown *UnknownProfile `json:"unknown_profile,omitempty"` // of unknown_profile

	Candidates []Candidate `json:"candidates,omitempty"` // of ambiguous_id

	Cause error  `json:"-"` // for the log, never for the client
	Allow string `json:"-"` // of a 405
	After string `json:"-"` // Retry-After, in seconds
}

// Candidate is a task that an ambiguous id fits.
type Candidate struct {
	Name  string `json:"name"` // a name that fits no other task
	Title string `json:"title"`
	Tool  string `json:"tool"`
	TS    int64  `json:"ts"`
}

// Wrong is one fault of a request.
type Wrong struct {
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

func (p *Problem) Unwrap() error { return p.Cause }

// Encode writes a document as JSON with a line feed behind it. It escapes no HTML: a document is no page.
func Encode(doc any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(doc)
	return buf.Bytes(), err
}

// NewProblem makes a problem.
func NewProblem(status int, code, title, detail string, suggestions ...string) *Problem {
	return &Problem{Status: status, Code: code, Title: title, Detail: detail, Suggestions: suggestions}
}

// Later marks a problem as one that may pass: the same request may succeed after the given number of seconds; "" =
// after some time.
func (p *Problem) Later(after string) *Problem {
	p.Retryable, p.After = true, after
	return p
}

// About names the task that the problem is about.
func (p *Problem) About(task string) *Problem {
	p.Task = task
	return p
}

// Because sets the cause.
func (p *Problem) Because(err error) *Problem {
	p.Cause = err
	return p
}

// Invalid is the problem of a document, or of parameters, with everything that is wrong.
func Invalid(wrong ...Wrong) *Problem {
	title, at := "A parameter is wrong", wrong[0].Parameter
	if at == "" || at[0] == '/' { // a JSON pointer
		title, at = "Something in the body is wrong", cmp.Or(at, "the body")
	}
	p := NewProblem(http.StatusUnprocessableEntity, "validation_failed", title, at+": "+wrong[0].Detail)
	p.Errors = wrong
	return p
}

// The first and the last millisecond that RFC 3339 can write.
var (
	firstMoment = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	lastMoment  = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() - 1
)

// Stamp writes a time, in Unix milliseconds, as all JSON of roost does: in RFC 3339. A time that RFC 3339 cannot
// write, which a damaged task may hold, becomes the last one that it can.
func Stamp(ms int64) string {
	return time.UnixMilli(min(max(ms, firstMoment), lastMoment)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// Date is Stamp; nil for an unknown time.
func Date(ms int64) *string {
	if ms <= 0 {
		return nil
	}
	text := Stamp(ms)
	return &text
}

// Millis returns the first known one of some times that Stamp wrote, in Unix milliseconds; 0 = none is known.
func Millis(stamps ...*string) int64 {
	for _, stamp := range stamps {
		if stamp == nil {
			continue
		}
		if at, err := time.Parse(time.RFC3339, *stamp); err == nil {
			return at.UnixMilli()
		}
	}
	return 0
}

// Moment reads a time that a user wrote, in Unix milliseconds: 2026-01-31, RFC 3339, or an age such as 7d or 2h before
// now. A time without a zone is local. An age of more than ten thousand years is refused.
func Moment(text string, now time.Time) (int64, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t.UnixMilli(), true
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 10_000*366 {
			return now.AddDate(0, 0, -n).UnixMilli(), true
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d).UnixMilli(), true
	}
	return 0, false
}
