package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// Line is one line of an item. Text holds no line break of any kind, so that a message cannot forge a line.
type Line struct {
	Style Style
	Text  string
}

// Style is the role of a line, for colours or CSS classes.
type Style string

// The styles.
const (
	Head    Style = "head"  // the first line of the item
	Plain   Style = "plain" // text
	Said    Style = "said"  // text of a model, which is Markdown
	Dim     Style = "dim"   // reasoning, output, housekeeping
	Added   Style = "added"
	Removed Style = "removed"
	Bad     Style = "bad"
	Good    Style = "good"
	Asked   Style = "asked"
)

// look is the appearance of a class: the beginning of the head line, and the styles of head and body.
type look struct {
	mark       string
	head, body Style
}

var looksOf = map[Class]look{
	User:      {"you", Head, Plain},
	Model:     {"model", Head, Said},
	Reasoning: {"thinking", Dim, Dim},
	Tool:      {"tool", Head, Plain},
	Output:    {"output", Dim, Dim},
	Question:  {"question", Asked, Plain},
	Result:    {"result", Good, Said},
	Request:   {"", Dim, Dim},
	Note:      {"·", Dim, Dim},
	Failure:   {"failed", Bad, Plain},
	Unknown:   {"?", Head, Plain},
	Appended:  {"·", Dim, Dim},
}

// Lines splits an item into lines: a head with its number, then at most max lines of its body (0 = all), then its
// choices and parts.
func Lines(it Item, max int) []Line { return Fold(it, func(Class) int { return max }) }

// Fold is Lines with a limit for each class: the most lines of a body, 0 for all lines, negative for only their
// number.
func Fold(it Item, limit func(Class) int) []Line {
	head := Headline(it)
	if it.Number > 0 {
		head = fmt.Sprintf("#%d ", it.Number) + head
	}
	max := limit(it.Class)
	if text := strings.TrimRight(unixEnds(it.Body), "\n \t"); max < 0 && text != "" {
		n := strings.Count(text, "\n") + 1
		head += fmt.Sprintf(" (%s folded)", api.Plural(n, "line"))
		it.Body = ""
	}
	first, rest, _ := strings.Cut(unixEnds(head), "\n") // a command may have many lines
	out := []Line{{headStyle(it), first}}
	if rest != "" {
		out = append(out, body(rest, Plain, false, 0)...)
	}
	out = append(out, body(it.Body, bodyStyle(it.Class), it.Diff, max)...)
	for i, c := range it.Choices {
		out = append(out, Line{Asked, fmt.Sprintf("  %d. %s", i+1, strings.Join(strings.Fields(unixEnds(c)), " "))})
	}
	for _, p := range it.Parts {
		if words := p.Class == it.Class && p.Title == "" && p.Images == 0 && !p.Partial && len(p.Choices)+len(p.Parts) == 0; words {
			out = append(out, body(p.Body, bodyStyle(p.Class), p.Diff, limit(p.Class))...)
			continue
		}
		for _, l := range Fold(p, limit) {
			l.Text = "  " + l.Text
			out = append(out, l)
		}
	}
	return out
}

// Headline describes an item: its speaker or act, and its images. It may have many lines, for example a command's.
func Headline(it Item) string {
	head := it.Title
	named := it.Class == Failure && slices.ContainsFunc([]string{"fail", "error", "denied"}, func(s string) bool {
		return strings.Contains(head, s)
	})
	if !named { // else the title already names the failure
		head = joinWords(looksOf[it.Class].mark, head)
	}
	if silent(it) {
		head += " (no words)"
	}
	if it.Partial {
		head += " (interrupted)"
	}
	return head + placeholder(it)
}

// placeholder represents the images of an item in its first line.
func placeholder(it Item) string {
	if it.Images == 0 {
		return ""
	}
	const most = 4
	known := slices.DeleteFunc(slices.Clone(it.Pictures), func(p string) bool { return p == "" })
	text := api.Plural(it.Images, "image")
	if len(known) > most {
		known = append(known[:most], fmt.Sprintf("and %d more", len(known)-most))
	}
	if len(known) > 0 {
		text += ": " + strings.Join(known, ", ")
	}
	return " [" + text + "]"
}

// silent reports whether a message of a user or model is empty.
func silent(it Item) bool {
	return (it.Class == Model || it.Class == User) && it.Number > 0 && it.Title == "" && strings.TrimSpace(it.Body) == "" &&
		it.Images+len(it.Parts)+len(it.Choices) == 0
}

func body(text string, style Style, diff bool, max int) []Line {
	text = strings.TrimRight(unixEnds(text), "\n \t")
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	if max > 0 && !diff {
		all = calm(all)
	}
	cut := 0
	if max > 0 && len(all) > max {
		cut = len(all) - max
		all = all[:max]
	}
	out := make([]Line, 0, len(all)+1)
	for _, l := range all {
		s := style
		if diff {
			s = DiffStyle(l)
		}
		out = append(out, Line{s, "  " + l})
	}
	if cut > 0 {
		out = append(out, Line{Dim, fmt.Sprintf("  ... %s", api.Plural(cut, "more line"))})
	}
	return out
}

// calm keeps only the last line of each progress report: consecutive lines that differ only in digits and contain per
// cents.
func calm(lines []string) []string {
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "%") }) {
		return lines
	}
	out := lines[:0:0]
	last, same := "", 0
	end := func() {
		if same > 1 {
			out[len(out)-1] += fmt.Sprintf(" (the last of %d such lines)", same)
		}
	}
	for _, l := range lines {
		shape := ""
		if strings.Contains(l, "%") {
			shape = strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' || r == ' ' || r == '=' || r == '#' {
					return -1
				}
				return r
			}, l)
		}
		if shape != "" && shape == last {
			out[len(out)-1] = l
			same++
			continue
		}
		end()
		out, last, same = append(out, l), shape, 1
	}
	end()
	return out
}

// DiffStyle returns the style of a line of a unified diff.
func DiffStyle(line string) Style {
	switch {
	case strings.HasPrefix(line, "+"):
		return Added
	case strings.HasPrefix(line, "-"):
		return Removed
	case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "*** "):
		return Dim
	}
	return Plain
}

func headStyle(it Item) Style {
	if silent(it) {
		return Dim
	}
	return cmp.Or(looksOf[it.Class].head, Head)
}

func bodyStyle(c Class) Style { return cmp.Or(looksOf[c].body, Plain) }

// Notice is a record about files that no message holds: files that changed since the model saw them, or a checkpoint. It is
// derived from the journal, and its position in the conversation from the order of commits.
type Notice struct {
	Row        int               // number of messages of the user's history before it
	At         int64             // Unix milliseconds
	Files      []task.FileRecord // the changed files; none in a notice about a checkpoint
	Checkpoint *task.Checkpoint  // nil in a notice about files
}

// Notices returns the notices of a task's visible conversation, in order. It leaves out notices of rewound turns, and the
// safety checkpoint before a restore, because the checkpoint of the restore follows.
func Notices(s *task.State) []Notice {
	type placed struct {
		Notice
		seq uint64
	}
	var all []placed
	for i := range s.Checkpoints {
		c := &s.Checkpoints[i]
		person := c.Reason == task.ReasonManual || c.Reason == task.ReasonRestored
		if c.Reason != task.ReasonSafety && (person || !s.RewoundCheckpoint(*c)) {
			all = append(all, placed{Notice{At: c.At, Checkpoint: c}, c.Seq})
		}
	}
	for _, f := range s.Files {
		if f.Source != "user_edited" || f.Seq == 0 {
			continue
		}
		if n := len(all); n > 0 && all[n-1].Checkpoint == nil && all[n-1].seq == f.Seq {
			all[n-1].Files = append(all[n-1].Files, f)
		} else {
			all = append(all, placed{Notice{At: f.RecordedAt, Files: []task.FileRecord{f}}, f.Seq})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.seq, b.seq) })
	rows := s.UI()
	ahead := make([]uint64, len(rows)+1) // the oldest commit of each row and the rows after it
	ahead[len(rows)] = ^uint64(0)
	for i, m := range slices.Backward(rows) {
		ahead[i] = min(m.Seq, ahead[i+1])
	}
	out := make([]Notice, len(all))
	for i, n := range all {
		out[i] = n.Notice
		out[i].Row, _ = slices.BinarySearch(ahead, n.seq+1)
	}
	return out
}

// ByRow groups notices by the number of the message before them, which is at least 1.
func ByRow(list []Notice) map[int][]Notice {
	out := map[int][]Notice{}
	for _, n := range list {
		row := max(n.Row, 1)
		out[row] = append(out[row], n)
	}
	return out
}

// Item returns the notice as an item of the conversation.
func (n Notice) Item() Item { return Item{TS: n.At, Kind: "notice", Class: Note, Title: n.Text()} }

// Text returns the notice in one line.
func (n Notice) Text() string {
	if c := n.Checkpoint; c != nil {
		text := fmt.Sprintf("checkpoint c%d", c.Number)
		text = joinWords(joinWords(text, CheckpointReason(c.Reason)), CheckpointTitle(c.Title))
		if c.Unkept > 0 {
			text += fmt.Sprintf(" (%d not kept)", c.Unkept)
		}
		return text
	}
	var names []string
	for _, f := range n.Files[:min(len(n.Files), 8)] {
		name := f.Path
		if f.Gone() {
			name += " deleted"
		}
		names = append(names, name+changer(f))
	}
	text := "changed since the model saw it: " + strings.Join(names, ", ")
	if more := len(n.Files) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// changer names the recorded author of a file's change; "" = none is recorded.
func changer(f task.FileRecord) string {
	switch {
	case f.Task != "":
		return " by another task (" + f.Task + ")"
	case f.By == "command", f.By == "subtask":
		return " while a " + f.By + " ran"
	case f.By == "restore":
		return " by a restore"
	}
	return ""
}

// checkpointReasons are texts for the reasons of checkpoints; the title of the checkpoint follows them.
var checkpointReasons = map[string]string{
	task.ReasonBefore: "before", task.ReasonCommand: "after a command", task.ReasonTurn: "after", task.ReasonSafety: "before a restore of",
	task.ReasonRestored: "after", task.ReasonManual: "saved by you", task.ReasonOthers: "changed by others:", task.ReasonDoubt: "in doubt:",
}

// CheckpointReason returns the reason of a checkpoint as text.
func CheckpointReason(reason string) string { return cmp.Or(checkpointReasons[reason], reason) }

// CheckpointTitle returns the title of a checkpoint without the text of its reason.
func CheckpointTitle(title string) string {
	return strings.TrimPrefix(strings.TrimPrefix(title, "before a restore of "), "after ")
}
