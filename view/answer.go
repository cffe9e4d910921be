package view

import (
	"math"
	"path"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Answers finds the results of the rows' calls in messages of the model's history, such as the content of a file that
// a call read, or why the user refused a change. The keys are indexes in rows. The two lists are parts of one task's
// histories from the same time; first is the index of messages[0] in its history, from 0.
//
// Only order, time and content connect a row to a call. A call matches a row if it calls the same tool on the same object,
// between the messages around the row. In doubt, no call matches.
func Answers(rows, messages [][]byte, first int) map[int]Item {
	calls := calls(messages, first)
	if len(calls) == 0 {
		return nil
	}
	out := map[int]Item{}
	next := 0
	for i, raw := range rows {
		r, ok := askedBy(raw)
		if !ok {
			continue
		}
		best, off := -1, int64(math.MaxInt64)
		for n := next; n < len(calls) && off > 0; n++ {
			if calls[n].fits(r) && calls[n].off(r.ts) < off {
				best, off = n, calls[n].off(r.ts)
			}
		}
		if best < 0 {
			continue
		}
		next = best + 1
		it := calls[best].answer
		if denied(it.Body) {
			it.Class, it.Title = Failure, "denied"
		}
		if it.Class != "" && (r.mute || it.Class == Failure || r.tool == "command" && !outputShown(rows[i+1:])) {
			out[i] = it
		}
	}
	return out
}

// Stretch returns the part of the model's history that may hold the results for rows. times are those of its
// messages, 0 for a message without one. The part is empty if nothing connects the two lists, and bounded by the
// number of rows.
func Stretch(rows [][]byte, times []int64) (from, to int) {
	var first, last int64
	low, high := int64(-1), int64(-1)
	for _, raw := range rows {
		r, ok := askedBy(raw)
		if !ok {
			continue
		}
		if r.ts != 0 && (first == 0 || r.ts < first) {
			first = r.ts
		}
		last = max(last, r.ts)
		if r.behind >= 0 && (low < 0 || r.behind < low) {
			low = r.behind
		}
		high = max(high, r.behind)
	}
	timed := slices.ContainsFunc(times, func(ts int64) bool { return ts != 0 })
	switch {
	case timed && first != 0:
		from = indexOf(times, 0, func(ts int64) bool { return ts >= first })
		to = indexOf(times, from, func(ts int64) bool { return ts > last })
	case !timed && low >= 0:
		from, to = int(min(low, int64(len(times)))), int(min(high, int64(len(times))))
	default:
		return 0, 0
	}
	// How many messages around a call are read: the message before it bounds the start of its reply; the messages
	// after it hold the result.
	const around = 3
	from, to = max(0, from-around), min(len(times), to+around)
	return from, min(to, from+2*len(rows)+3*around)
}

// indexOf returns the index of the first time from an index on that fits; len(times) if none does.
func indexOf(times []int64, from int, fits func(int64) bool) int {
	if i := slices.IndexFunc(times[from:], fits); i >= 0 {
		return from + i
	}
	return len(times)
}

// asked is the call that a row shows.
type asked struct {
	tool   string
	about  []string // paths, a command, an address
	ts     int64
	behind int64 // Cline: the index of the last message when the row was written; -1 = unknown
	mute   bool  // rows of this kind never hold the result
}

// muteRows are the tools whose rows hold no result.
var muteRows = set("readFile fetchInstructions skill useSkill readCommandOutput webFetch webSearch runSlashCommand listCodeDefinitionNames")

// askedBy reads a row that shows a call.
func askedBy(raw []byte) (asked, bool) {
	r := asked{behind: -1}
	if !isObject(raw) {
		return r, false
	}
	r.ts, _ = esjson.GetInt(raw, "ts")
	if n, ok := esjson.GetInt(raw, "conversationHistoryIndex"); ok {
		r.behind = n
	}
	typ, text := str(raw, "type"), str(raw, "text")
	switch kind := str(raw, typ); kind {
	case "command":
		r.tool, r.about = kind, []string{strings.TrimSpace(text)}
		return r, true
	case "tool":
		inner, ok := object(text)
		if !ok {
			return r, false
		}
		r.tool = str(inner, "tool")
		r.about = actedOn(inner, "path", "command", "query", "regex", "skill")
		r.mute = muteRows[r.tool] && (r.tool != "listCodeDefinitionNames" || str(inner, "content") == "")
		return r, r.tool != ""
	}
	return r, false
}

// actedOn returns the objects of a tool row: the values of the members with these names, and the files of a batch.
func actedOn(row []byte, names ...string) (out []string) {
	for _, name := range names {
		if s := str(row, name); s != "" {
			out = append(out, s)
		}
	}
	for f := range objectsOf(row, "batchFiles") {
		out = append(out, str(f, "path"))
	}
	return out
}

// called is a call of the model's history and its result.
type called struct {
	id            string // "" for a call by tags
	tool          string
	about         []string
	before, after int64 // times of the messages around the reply, 0 when unknown
	place         int   // of the reply in its history
	answer        Item
}

// slack bounds the difference in milliseconds between the times of a row and its message: they are written one after
// the other.
const slack = 2000

func (c *called) fits(r asked) bool {
	switch {
	case !slices.Contains(families[r.tool], c.tool):
		return false
	case c.off(r.ts) > slack:
		return false
	case c.before == 0 && c.after == 0 && (r.behind < 0 || int64(c.place) < r.behind || int64(c.place) > r.behind+1):
		return false // its position is unknown, or does not match
	}
	if len(r.about) == 0 || len(c.about) == 0 {
		return len(r.about) == len(c.about) // a call without an object must not match every row
	}
	return slices.ContainsFunc(r.about, func(a string) bool {
		return slices.ContainsFunc(c.about, func(b string) bool { return sameFile(a, b) })
	})
}

// off returns the distance of a time from the period in which the row of the call may have been written.
func (c *called) off(ts int64) int64 {
	switch {
	case ts != 0 && c.before != 0 && ts < c.before:
		return c.before - ts
	case ts != 0 && c.after != 0 && ts > c.after:
		return ts - c.after
	}
	return 0
}

// sameFile reports whether two texts may name the same file: rows show paths from the workspace, calls the paths that
// the model wrote.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	a, b = cleaned(a), cleaned(b)
	if len(a) < len(b) {
		a, b = b, a
	}
	return a == b || b != "" && b != "." && strings.HasSuffix(a, "/"+b)
}

func cleaned(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(s), "\\", "/")
	if strings.Contains(s, "\n") || len(s) > 4096 {
		return s
	}
	return strings.TrimLeft(path.Clean(s), "./")
}

// calls lists the calls of messages in order, with their results.
func calls(messages [][]byte, first int) []called {
	var out []called
	byID := map[string]int{}
	open := -1 // the last call by tags that has no result
	var before int64
	for i, raw := range messages {
		it := API(raw, 0)
		from := len(out)
		switch it.Kind {
		case "assistant":
			for _, c := range callsOf(raw) {
				c.before, c.place = before, first+i
				if c.id != "" {
					byID[c.id] = len(out)
				} else {
					open = len(out)
				}
				out = append(out, c)
			}
		case "user":
			for _, p := range it.Parts {
				n, known := byID[p.Call]
				switch {
				case p.Kind == "tool_result" && known:
					p.Title, p.Call = "", ""
					out[n].answer = spelled(p)
				case p.Kind == "text" && p.Title != "" && (p.Class == Output || p.Class == Failure) && open >= 0:
					p.Title = ""
					out[open].answer = p
					open = -1
				}
			}
		}
		if it.TS != 0 && it.Kind == "user" {
			before = it.TS
			for n := len(out) - 1; n >= 0 && out[n].after == 0 && n < from; n-- {
				out[n].after = it.TS
			}
		}
	}
	return out
}

// callsOf returns the calls of one reply.
func callsOf(raw []byte) (out []called) {
	for block := range blocksOf(raw) {
		switch str(block, "type") {
		case "tool_use":
			list, _ := params(esjson.Member(block, "input"))
			out = append(out, called{id: str(block, "id"), tool: str(block, "name"), about: aboutCall(list)})
		case "text":
			for _, p := range pieces(str(block, "text")) {
				if p.tag != "" && p.tag != "thinking" {
					out = append(out, called{tool: p.tag, about: aboutCall(tagParams(p.text))})
				}
			}
		}
	}
	return out
}

func aboutCall(list []param) (out []string) {
	for _, p := range list {
		switch p.name {
		case "path", "file_path", "target_file", "command", "query", "regex", "skill", "url":
			if p.text != "" {
				out = append(out, strings.TrimSpace(p.text))
			}
		case "files", "args":
			out = append(out, pathsIn(p.text)...)
		case "patch", "input":
			for line := range strings.Lines(p.text) {
				if _, file, ok := strings.Cut(line, " File: "); ok && strings.HasPrefix(line, "*** ") {
					out = append(out, strings.TrimSpace(file))
				}
			}
		}
	}
	return out
}

// denied reports whether a result means that the user denied the call.
func denied(text string) bool {
	return strings.HasPrefix(text, "The user denied") || strings.HasPrefix(text, "The user rejected")
}

// outputShown reports whether the rows after a command, up to the next act, show its output.
func outputShown(rows [][]byte) bool {
	for _, raw := range rows {
		it := UI(raw, 2)
		switch it.Kind {
		case "say:command_output", "ask:command_output":
			if it.Body != "" {
				return true
			}
		case "ask:command", "ask:tool", "say:api_req_started", "say:completion_result":
			return false
		}
	}
	return true // the stretch ends here, and output may follow
}

// repeated are the members of a result that repeat the row, or give the model advice.
var repeated = set("path operation notice is_new_file files")

// commandHint is advice that the tool for commands adds for the model.
const commandHint = "The command did not succeed: find out why before you continue."

// Spoken returns a result of a tool without the parts that only the model needs: the outcome of a change that the row
// already shows, the head before the output of a command, and advice.
func Spoken(it Item) Item {
	if raw, ok := object(it.Body); ok && str(raw, "notice") != "" {
		list, _ := params(raw)
		it.Body = members(slices.DeleteFunc(list, func(p param) bool { return repeated[p.name] }))
		return it
	}
	if !strings.HasPrefix(it.Body, "Command executed in terminal") {
		return it
	}
	body := unixEnds(it.Body)
	if _, output, found := strings.Cut(body, "\nOutput:\n"); found {
		body = output
	} else {
		_, body, _ = strings.Cut(body, "\n")
	}
	lines := slices.DeleteFunc(strings.Split(body, "\n"), func(line string) bool { return line == commandHint })
	it.Body = strings.Trim(strings.Join(lines, "\n"), "\n")
	return it
}

// ResultLines returns the number of lines to show for a tool's result: the lines of the file for read_file, and all
// lines for others. It is 0 for tools whose result only confirms the call.
func ResultLines(tool, text string) int {
	switch tool {
	case "attempt_completion", "ask_followup_question", "update_todo_list", "switch_mode":
		return 0
	}
	lines := strings.Split(strings.TrimRight(unixEnds(text), "\n"), "\n")
	if tool != "read_file" {
		return len(lines)
	}
	n := 0
	for i, line := range lines {
		number, rest, found := strings.Cut(strings.TrimSpace(line), "|")
		number = strings.TrimSpace(number)
		if !found || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		if strings.TrimSpace(rest) != "" || i < len(lines)-1 { // the last line break of a file begins no line
			n++
		}
	}
	if n == 0 {
		return len(lines)
	}
	return n
}
