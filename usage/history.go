package usage

import (
	"crypto/md5"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Row is what a history row holds in addition to what follows from the messages.
type Row struct {
	ID         string
	RootTask   string // "" leaves the key out, here and below
	ParentTask string
	Number     int64
	Size       int64 // bytes of the task's folder; not used when there are no messages
	Workspace  string
	Mode       string
	Profile    string // name of the provider profile
	Status     string // "active", "completed" or "delegated": only of tasks with parents or children
	Now        int64  // Unix milliseconds; the ts of a task without messages
	Family     Family
}

// Family is what a history row holds of a task's children. Empty members are left out.
type Family struct {
	Delegated string   // the last child
	Awaiting  string   // the child that the task waits for
	Children  []string // in order of their creation
	Completed string   // the last child that came back
	Result    string   // and its result
}

// FamilyKeys are the members of a row that Family makes: one that is not in a new row
// has to go from an old one.
var FamilyKeys = [...]string{"delegatedToId", "awaitingChildId", "childIds", "completedByChildId", "completionResultSummary"}

func (f Family) write(o *esjson.Object) {
	text(o, FamilyKeys[0], f.Delegated)
	text(o, FamilyKeys[1], f.Awaiting)
	if len(f.Children) > 0 {
		o.Raw(FamilyKeys[2], esjson.Strings(f.Children))
	}
	text(o, FamilyKeys[3], f.Completed)
	text(o, FamilyKeys[4], f.Result)
}

// HistoryItem is a task's history row: the exact bytes of Roo's history_item.json. Its texts for tasks without a
// title are English in every locale, so that the same task gives the same bytes.
func HistoryItem(messages [][]byte, r Row) []byte {
	title, ts := "Task #"+strconv.FormatInt(r.Number, 10)+" (No messages)", esjson.Number(nil, float64(r.Now))
	sum := Tokens{HasCacheWrites: true, HasCacheReads: true}
	if len(messages) == 0 {
		r.Size = 0
	} else {
		title, ts, sum = rowsOf(messages)
		if title == "" {
			title = "Task #" + strconv.FormatInt(r.Number, 10) + " (Incomplete)"
		}
	}
	var o esjson.Object
	o.String("id", r.ID)
	text(&o, "rootTaskId", r.RootTask)
	text(&o, "parentTaskId", r.ParentTask)
	o.Int("number", r.Number)
	number(&o, "ts", ts)
	o.String("task", title)
	o.Float("tokensIn", sum.In)
	o.Float("tokensOut", sum.Out)
	if sum.HasCacheWrites {
		o.Float("cacheWrites", sum.CacheWrites)
	}
	if sum.HasCacheReads {
		o.Float("cacheReads", sum.CacheReads)
	}
	o.Float("totalCost", sum.Cost)
	o.Int("size", r.Size)
	text(&o, "workspace", r.Workspace)
	text(&o, "mode", r.Mode)
	text(&o, "apiConfigName", r.Profile)
	text(&o, "status", r.Status)
	r.Family.write(&o)
	return o.Bytes()
}

// rowsOf returns what the rows show of their task: the first one its title, the last one that is no resume question
// when it was at work, and all but the first what it used.
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

func text(o *esjson.Object, key, val string) {
	if val != "" {
		o.String(key, val)
	}
}

// number writes a number as JSON.stringify does. A value of any other kind is
// passed through: the message's ts is what it is.
func number(o *esjson.Object, key string, raw []byte) {
	if f, ok := numberOf(raw); ok {
		o.Float(key, f)
		return
	}
	o.Raw(key, raw)
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

// NewTodo is a todo with the id that Roo would give it.
func NewTodo(content, status string) Todo {
	// MD5 over UTF-8, in which Node writes a lone surrogate as U+FFFD.
	sum := md5.Sum([]byte(wellFormed(content) + status))
	return Todo{ID: hex.EncodeToString(sum[:]), Content: content, Status: status}
}

func wellFormed(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == 0xED && i+2 < len(s) && s[i+1] >= 0xA0 {
			b.WriteString("\uFFFD")
			i += 3
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// LastTodos is the newest todo list in a UI list as the raw JSON array that was
// stored, whether or not it was approved; nil when there is none.
func LastTodos(messages [][]byte) []byte {
	for i := len(messages) - 1; i >= 0; i-- {
		if list, ok := todosOf(parseRow(messages[i])); ok {
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
