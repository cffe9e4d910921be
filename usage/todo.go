package usage

import (
	"crypto/md5"
	"encoding/hex"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

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
	for _, line := range strings.Split(text, "\n") {
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
	text := []byte(r.textString())
	if !esjson.Valid(text) || esjson.TypeOf(text) != esjson.TypeObject {
		return nil, false
	}
	if tool, _ := esjson.GetString(text, "tool"); tool != "updateTodoList" {
		return nil, false
	}
	list, ok := esjson.Get(text, "todos")
	return list, ok && esjson.TypeOf(list) == esjson.TypeArray
}
