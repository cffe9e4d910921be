// Package usage reads tokens, cost, the history row and the todo list out of a
// task's UI messages, as Roo does.
//
// A message is its raw stored JSON. Input that is not a JSON object counts as nothing; no function here fails on
// hostile messages.
//
// Where Roo's own metrics go wrong, this package does not follow:
//   - a row that shares the ts of a command or of an MCP question keeps its cost;
//   - token fields that are not numbers (or beyond a double's range) count as 0 and are never
//     concatenated;
//   - an MCP row whose text is not an object does not stop the whole list.
//
// Sums in doubles run in list order, because addition of doubles depends on the
// order and the history row must equal Roo's to the last digit.
package usage

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/workspace/terminal"
)

// Tokens are Roo's sums over a UI list. They are doubles because Roo's are: old rows hold fractions, and the cost is
// a fraction.
type Tokens struct {
	In, Out       float64 // tokens
	CacheWrites   float64 // tokens; 0 until HasCacheWrites
	CacheReads    float64 // tokens; 0 until HasCacheReads
	Cost          float64 // USD
	ContextTokens float64 // size of the newest request and its reply

	HasCacheWrites bool // a row has a number for it; otherwise Roo leaves out the sum
	HasCacheReads  bool
}

// The numeric members of a request row, in the order of entry.val.
const (
	tokensIn = iota
	tokensOut
	cacheWrites
	cacheReads
	cost
	fields
)

var fieldNames = [fields]string{"tokensIn", "tokensOut", "cacheWrites", "cacheReads", "cost"}

// entry is one row that adds to the sums: a request or a condensation.
type entry struct {
	val     [fields]float64
	has     [fields]bool // the member is a number
	set     [fields]bool // the member is present
	context float64
}

// tokens returns what the row adds to the sums.
func (e *entry) tokens() Tokens {
	return Tokens{
		In: e.val[tokensIn], Out: e.val[tokensOut], CacheWrites: e.val[cacheWrites], CacheReads: e.val[cacheReads],
		Cost: e.val[cost], ContextTokens: e.context, HasCacheWrites: e.has[cacheWrites], HasCacheReads: e.has[cacheReads],
	}
}

// AddTo adds one row's tokens to sum. The order of rows matters: the sums are doubles.
func (t Tokens) AddTo(sum *Tokens) {
	sum.In += t.In
	sum.Out += t.Out
	sum.CacheWrites += t.CacheWrites
	sum.CacheReads += t.CacheReads
	sum.Cost += t.Cost
	sum.HasCacheWrites = sum.HasCacheWrites || t.HasCacheWrites
	sum.HasCacheReads = sum.HasCacheReads || t.HasCacheReads
	if t.ContextTokens != 0 {
		sum.ContextTokens = t.ContextTokens
	}
}

// textRoom bounds the text of a request row that is parsed, in bytes: no model accepts a quarter of that.
const textRoom = 16 << 20

// read reads the counted members from the text of a request row: a JSON string that holds JSON.
func (e *entry) read(text []byte) {
	if len(text) > textRoom {
		return
	}
	inner := []byte(esjson.Text(text))
	if esjson.TypeOf(inner) != esjson.TypeObject || !esjson.Valid(inner) {
		return
	}
	for key, val := range esjson.Fields(inner) {
		if f := slices.Index(fieldNames[:], string(key)); f >= 0 {
			e.set[f] = true
			e.val[f], e.has[f] = esjson.Double(val)
		}
	}
	e.context = e.val[tokensIn] + e.val[tokensOut]
}

// merge replaces the members of a started row by those that the finished row has, as {...started, ...finished} does.
func (e *entry) merge(finished entry) {
	for f := range fields {
		if finished.set[f] {
			e.val[f], e.has[f], e.set[f] = finished.val[f], finished.has[f], true
		}
	}
	e.context = e.val[tokensIn] + e.val[tokensOut]
}

func entryOf(r row) (e entry, ok bool) {
	switch {
	case r.isSay("api_req_started"):
		e.read(r.text)
		return e, true
	case r.isSay("condense_context"):
		if esjson.TypeOf(r.condens) == esjson.TypeObject {
			v, _ := esjson.Get(r.condens, "cost")
			e.val[cost], e.has[cost] = esjson.Double(v)
			v, _ = esjson.Get(r.condens, "newContextTokens")
			e.context, _ = esjson.Double(v)
		}
		return e, true
	}
	return e, false
}

// totals are the sums of Roo's history row: without the first row, which is the task itself, and without the output
// of commands. In a task of 2024 a separate row holds the result of a request; it belongs to the newest request
// without a result. The sums are computed only after that, because a sum of doubles depends on the order and the
// history row must equal Roo's to the last digit.
type totals struct {
	entries []entry
	open    []int // started rows without a finished row
}

func (t *totals) add(r row) {
	if r.isOutput() {
		return
	}
	if r.isSay("api_req_finished") {
		if last := len(t.open) - 1; last >= 0 {
			var f entry
			f.read(r.text)
			t.entries[t.open[last]].merge(f)
			t.open = t.open[:last]
		}
		return
	}
	if e, ok := entryOf(r); ok {
		if r.isSay("api_req_started") {
			t.open = append(t.open, len(t.entries))
		}
		t.entries = append(t.entries, e)
	}
}

func (t *totals) sum() (sum Tokens) {
	for i := range t.entries {
		t.entries[i].tokens().AddTo(&sum)
	}
	return sum
}

// SpentOf returns what a UI row of type "say" adds to the sums, false for a row that adds nothing. The caller has
// parsed the row: kind, and the members text and contextCondense as raw JSON, nil when absent. A long task keeps
// these small records instead of its rows.
//
// A task of 2024 has a second row for each finished request. It counts as a row of its own: the cost counts also
// where the first one was lost. The two rows never held the same numbers.
func SpentOf(kind string, text, contextCondense []byte) (Tokens, bool) {
	r := row{typ: "say", say: kind, text: text, condens: contextCondense}
	if r.isSay("api_req_finished") {
		r.say = "api_req_started"
	}
	e, ok := entryOf(r)
	return e.tokens(), ok
}

// row holds what the metrics need of a UI message. Strings are only decoded where a kind is compared; other text
// stays raw until it is needed.
type row struct {
	typ     string
	ask     string
	say     string
	text    []byte // raw JSON value, nil when absent
	ts      []byte // raw JSON value, nil when absent
	condens []byte // raw contextCondense, nil when absent
}

func parseRow(raw []byte) (r row) {
	var typ, ask, say []byte
	_, _ = esjson.Take(raw, "type", &typ, "ask", &ask, "say", &say, "text", &r.text, "ts", &r.ts, "contextCondense", &r.condens)
	r.typ, r.ask, r.say = esjson.Text(typ), esjson.Text(ask), esjson.Text(say)
	return r
}

func (r row) isSay(kind string) bool { return r.typ == "say" && r.say == kind }

func (r row) isAsk(kind string) bool { return r.typ == "ask" && r.ask == kind }

func (r row) isOutput() bool { return r.ask == "command_output" || r.say == "command_output" }

// isResume reports whether the row only records that a task was opened again.
func (r row) isResume() bool { return r.ask == "resume_task" || r.ask == "resume_completed_task" }

// isSpace reports whether r matches ECMAScript's \s, which trim() also removes.
func isSpace(r rune) bool { return unicode.IsSpace(r) && r != 0x85 || r == 0xFEFF }

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// Row holds the part of a history row that does not follow from the messages.
type Row struct {
	ID         string
	RootTask   string // "" leaves the key out, here and below
	ParentTask string
	Number     int64
	Size       int64 // bytes of the task's folder; ignored when there are no messages
	Workspace  string
	Mode       string
	Profile    string // name of the provider profile
	Status     string // "active", "completed" or "delegated": only of tasks with parents or children
	Now        int64  // Unix milliseconds; the ts of a task without messages
	Family     Family
}

// Family holds the part of a history row about a task's children. Empty members are left out.
type Family struct {
	Delegated string   // the last child
	Awaiting  string   // the child that the task waits for
	Children  []string // in the order of their creation
	Completed string   // the last child that completed
	Result    string   // its result
}

// FamilyKeys are the members of a row that Family makes: an old row loses those that the new row lacks.
var FamilyKeys = [...]string{"delegatedToId", "awaitingChildId", "childIds", "completedByChildId", "completionResultSummary"}

// members are names and values for esjson.ObjectOf.
func (f Family) members() []any {
	var children []byte
	if len(f.Children) > 0 {
		children = esjson.Strings(f.Children)
	}
	return []any{FamilyKeys[0], esjson.Given(f.Delegated), FamilyKeys[1], esjson.Given(f.Awaiting), FamilyKeys[2], children,
		FamilyKeys[3], esjson.Given(f.Completed), FamilyKeys[4], esjson.Given(f.Result)}
}

// HistoryItem returns a task's history row: the exact bytes of Roo's history_item.json. Its texts for tasks without a
// title are English in every locale, so that the same task gives the same bytes.
func HistoryItem(messages [][]byte, r Row) []byte {
	title, ts := "Task #"+strconv.FormatInt(r.Number, 10)+" (No messages)", esjson.Number(nil, float64(r.Now))
	sum := Tokens{HasCacheWrites: true, HasCacheReads: true}
	if len(messages) == 0 {
		r.Size = 0
	} else {
		title, ts, sum = rowsOf(messages)
		title = cmp.Or(title, "Task #"+strconv.FormatInt(r.Number, 10)+" (Incomplete)")
	}
	var cacheWrites, cacheReads any
	if sum.HasCacheWrites {
		cacheWrites = sum.CacheWrites
	}
	if sum.HasCacheReads {
		cacheReads = sum.CacheReads
	}
	members := []any{"id", r.ID, "rootTaskId", esjson.Given(r.RootTask), "parentTaskId", esjson.Given(r.ParentTask),
		"number", r.Number, "ts", number(ts), "task", title,
		"tokensIn", sum.In, "tokensOut", sum.Out, "cacheWrites", cacheWrites, "cacheReads", cacheReads,
		"totalCost", sum.Cost, "size", r.Size, "workspace", esjson.Given(r.Workspace), "mode", esjson.Given(r.Mode),
		"apiConfigName", esjson.Given(r.Profile), "status", esjson.Given(r.Status)}
	return esjson.ObjectOf(append(members, r.Family.members()...)...)
}

// rowsOf returns what the rows show of their task: the title from the first row, the time of the last row that is no
// resume question, and the tokens and cost of all rows but the first.
func rowsOf(messages [][]byte) (title string, ts []byte, sum Tokens) {
	var all totals
	for i, m := range messages {
		r := parseRow(m)
		if i == 0 {
			title, ts = trim(esjson.Text(r.text)), r.ts
		} else {
			all.add(r)
		}
		if !r.isResume() {
			ts = r.ts
		}
	}
	return title, ts, all.sum()
}

// number spells a number as JSON.stringify does. A value of any other kind stays, as Roo leaves a message's ts.
func number(raw []byte) []byte {
	if f, ok := esjson.Double(raw); ok {
		return esjson.Number(nil, f)
	}
	return raw
}

// The states of a todo.
const (
	Pending    = "pending"
	InProgress = "in_progress"
	Completed  = "completed"
)

// Todo is one line of a task's todo list, as Roo stores it.
type Todo struct {
	ID      string `json:"id"` // hex MD5 of content and status: it changes with the status
	Content string `json:"content"`
	Status  string `json:"status"`
}

// ParseTodos reads a checklist: "[ ] a", "[x] b", "[-] c", each with or without
// a leading "-". Lines of any other form are skipped.
func ParseTodos(text string) []Todo {
	var out []Todo
	for line := range strings.SplitSeq(text, "\n") {
		// Roo splits at \r?\n; trimming takes the \r as well.
		if t, ok := parseTodo(trim(line)); ok {
			out = append(out, t)
		}
	}
	return out
}

func parseTodo(line string) (Todo, bool) {
	if rest, ok := strings.CutPrefix(line, "-"); ok {
		line = strings.TrimLeftFunc(rest, isSpace)
	}
	line, ok := strings.CutPrefix(line, "[")
	if !ok {
		return Todo{}, false
	}
	box, rest, ok := strings.Cut(line, "]")
	if !ok {
		return Todo{}, false
	}
	status := Pending
	switch trim(box) {
	case "x", "X":
		status = Completed
	case "-", "~":
		status = InProgress
	case "":
		if !strings.Contains(box, " ") { // the mark itself must be a plain blank
			return Todo{}, false
		}
	default:
		return Todo{}, false
	}
	content := strings.TrimLeftFunc(rest, isSpace)
	// The text runs to the end of the line, and ECMAScript has four line ends.
	if content == rest || content == "" || strings.ContainsAny(content, "\n\r\u2028\u2029") {
		return Todo{}, false
	}
	return NewTodo(content, status), true
}

// NewTodo returns a todo with the id that Roo would give it.
func NewTodo(content, status string) Todo {
	// MD5 over UTF-8, in which Node writes a lone surrogate as U+FFFD.
	sum := md5.Sum([]byte(terminal.WellFormed(content) + status))
	return Todo{ID: hex.EncodeToString(sum[:]), Content: content, Status: status}
}

// LastTodos returns the newest todo list in a UI list as the stored raw JSON array, whether or not it was approved;
// nil when there is none.
func LastTodos(messages [][]byte) []byte {
	for _, raw := range slices.Backward(messages) {
		if list, ok := todosOf(parseRow(raw)); ok {
			return list
		}
	}
	return nil
}

func todosOf(r row) ([]byte, bool) {
	if !r.isAsk("tool") && !r.isSay("user_edit_todos") {
		return nil, false
	}
	text := []byte(esjson.Text(r.text))
	if !esjson.Valid(text) || esjson.TypeOf(text) != esjson.TypeObject {
		return nil, false
	}
	if tool, _ := esjson.GetString(text, "tool"); tool != "updateTodoList" {
		return nil, false
	}
	list, ok := esjson.Get(text, "todos")
	return list, ok && esjson.TypeOf(list) == esjson.TypeArray
}
