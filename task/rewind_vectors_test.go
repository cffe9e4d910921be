package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/rewind"
)

// fromRoo is a task that another program's two files hold.
func fromRoo(t testing.TB, ui, api [][]byte) *foldedLog {
	t.Helper()
	text := func(list [][]byte) (out []string) {
		for _, e := range list {
			out = append(out, string(e))
		}
		return out
	}
	uiFile, uiSpans := list(text(ui)...)
	apiFile, apiSpans := list(text(api)...)
	return tellWith(t, blobMap{"u": uiFile, "a": apiFile}, task.Adopted{Task: "t", Tool: "roo", Files: []task.Original{
		original(task.UI, "u", uiSpans...), original(task.API, "a", apiSpans...),
	}})
}

// bounds are what a rewind owes the model's side: so many messages from the beginning stay, and from that place on all go. Between
// the two Roo's own rule may decide. A message stays that a row which stays shows, and everything before it; one that only rows which go
// show goes, with everything behind it. Where the rows have rising times, so do messages by time: none is later than what follows it.
func bounds(ui, api [][]byte, at int) (stay, gone int) {
	if at == 0 {
		return 0, 0
	}
	for _, p := range evidence(ui, api) {
		if p[0] < at {
			stay = max(stay, p[1]+1)
		}
	}
	gone = len(api)
	for _, p := range evidence(ui, api) {
		ask, _ := esjson.GetString(ui[p[0]], "ask") // of a call: the words before it may be shown still
		if p[0] >= at && p[1] >= stay && ask == "" {
			gone = min(gone, p[1])
		}
	}
	began, ok := timeOf(ui, at)
	if !ok {
		return stay, gone
	}
	least := int64(math.MaxInt64)
	for i, raw := range slices.Backward(api) {
		ts, _ := esjson.GetInt(raw, "ts")
		if ts > 0 {
			least = min(least, ts)
		}
		switch role, _ := esjson.GetString(raw, "role"); {
		case least < began:
			stay = max(stay, min(i+1, gone))
			return stay, gone
		case i >= stay && ts > 0 && role == "user" && at < len(ui):
			gone = min(gone, i)
		}
	}
	return stay, gone
}

// timeOf is when a row came: a row without a time has that of the next one that has one, else it is the end. False where rows' times fall.
func timeOf(ui [][]byte, at int) (int64, bool) {
	last, began := int64(0), int64(math.MaxInt64)
	for i, raw := range ui {
		ts, _ := esjson.GetInt(raw, "ts")
		if ts <= 0 {
			continue
		}
		if ts < last {
			return 0, false
		}
		if last = ts; i >= at {
			began = min(began, ts)
		}
	}
	return began, true
}

// evidence are pairs of a row and the message that it shows, known by words that nothing else has. Pairs that cross are none.
func evidence(ui, api [][]byte) (pairs [][2]int) {
	begins := func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
	for i, raw := range ui {
		role, row := rowWords(raw, i)
		if len(row) < 8 {
			continue
		}
		alike, at := 0, -1
		for j, raw := range api {
			if of, _ := esjson.GetString(raw, "role"); of != role {
				continue
			}
			for _, words := range messageWords(raw) {
				if len(words) >= 8 && begins(row, words) {
					alike, at = alike+1, j
				}
			}
		}
		for k, raw := range ui {
			if r, words := rowWords(raw, k); k != i && r == role && words != "" && begins(words, row) {
				alike++
			}
		}
		if alike == 1 {
			pairs = append(pairs, [2]int{i, at})
		}
	}
	all := slices.Clone(pairs)
	return slices.DeleteFunc(pairs, func(p [2]int) bool {
		return slices.ContainsFunc(all, func(q [2]int) bool { return p[0] < q[0] && p[1] > q[1] || p[0] > q[0] && p[1] < q[1] })
	})
}

// rowWords are whose words a row shows, and which.
func rowWords(raw []byte, i int) (role, words string) {
	text, _ := esjson.GetString(raw, "text")
	said, _ := esjson.GetString(raw, "say")
	asked, _ := esjson.GetString(raw, "ask")
	switch {
	case said == "user_feedback" || said == "text" && i == 0:
		return "user", strings.TrimSpace(text)
	case said == "text" || said == "completion_result" || asked == "command":
		return "assistant", strings.TrimSpace(text)
	case asked == "followup":
		question, _ := esjson.GetString([]byte(text), "question")
		return "assistant", strings.TrimSpace(question)
	}
	return "", ""
}

// messageWords are the texts of a message's blocks and of its calls.
func messageWords(raw []byte) (out []string) {
	bare := func(text string) string {
		return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "<user_message>"))
	}
	content, _ := esjson.Get(raw, "content")
	if text, err := esjson.Unquote(content); err == nil {
		return []string{bare(text)}
	}
	for block := range esjson.Array(content) {
		if text, ok := esjson.GetString(block, "text"); ok {
			out = append(out, bare(text))
		}
		for _, key := range []string{"command", "question", "result"} {
			if input, ok := esjson.Get(block, "input"); ok {
				text, _ := esjson.GetString(input, key)
				out = append(out, bare(text))
			}
		}
	}
	return out
}

// tagsLeft is a message as a rewind leaves it: without the tags of a summary or a marker that is not there any more.
func tagsLeft(raw []byte, left [][]byte) []byte {
	for tag, id := range map[string]string{"condenseParent": "condenseId", "truncationParent": "truncationId"} {
		parent, ok := esjson.GetString(raw, tag)
		if ok && !slices.ContainsFunc(left, func(m []byte) bool { have, _ := esjson.GetString(m, id); return have == parent }) {
			raw = esjson.Remove(raw, tag)
		}
	}
	return raw
}

// cutAsRoo is the rewind of a case; errNoRow when Roo finds no row of that time.
func cutAsRoo(c conformance.Case, s *task.State) (task.Rewound, error) {
	in := c.Input
	row, keep := int(in.Int("index", 0)), in.Bool("include_target", false)
	if in.Str("op") == "to_timestamp" {
		row = slices.IndexFunc(in.Get("ui").List(), func(m []byte) bool {
			ts, ok := esjson.GetFloat(m, "ts")
			return ok && ts == in.Float("ts")
		})
		if row < 0 {
			return task.Rewound{}, errNoRow
		}
	}
	e, err := rewind.At(s, row, keep)
	if in.Bool("skip_cleanup", false) {
		e.Lift = nil
	}
	return e, err
}

var errNoRow = errors.New("no row of that time")

// withoutTags is a message as two lists can be compared by it.
func withoutTags(raw []byte) string {
	return string(esjson.Remove(esjson.Remove(raw, "condenseParent"), "truncationParent"))
}

func TestVectorsRewind(t *testing.T) {
	conformance.Run(t, "rewind", func(t *testing.T, c conformance.Case) (choice bool) {
		ui, api := c.Input.Get("ui").List(), c.Input.Get("api").List()
		w := fromRoo(t, ui, api)
		e, err := cutAsRoo(c, w.State)
		switch {
		case errors.Is(err, errNoRow):
			c.Same(t, "error", []byte(`"not_found"`), c.Want.Get("error"))
			return false
		case errors.Is(err, rewind.ErrNothingToCut):
		case err != nil:
			t.Fatal(err)
		default:
			w.then(e)
		}
		gotUI, gotAPI := stored(t, w.State, w.UI()), stored(t, w.State, w.API())
		if err != nil {
			// Nothing stands behind the place: both sides are as they were, to the byte, and Roo's too but for what is not sent.
			at := placeOf(c, ui)
			if at >= 0 && at < len(ui) {
				t.Fatalf("row %d of %d was not cut: %v", at, len(ui), err)
			}
			c.Same(t, "ui", conformance.Array(gotUI), conformance.Array(ui))
			c.Same(t, "api", conformance.Array(gotAPI), conformance.Array(api))
			return c.Want.Has("error") || !esjson.Equal(conformance.Array(api), c.Want.Get("api"))
		}
		c.Same(t, "ui", conformance.Array(gotUI), c.Want.Get("ui"))
		stay, gone := bounds(ui, api, len(gotUI))
		rules := owed{stay: stay, gone: gone, api: api, lifts: !c.Input.Bool("skip_cleanup", false)}
		for _, wrong := range rules.broken(gotAPI) {
			t.Error(wrong)
		}
		began, _ := esjson.GetInt(ui[len(gotUI)], "ts")
		if choice = c.Bug != "" || began <= 0 || len(rules.broken(c.Want.Get("api").List())) > 0; !choice {
			c.Same(t, "api", conformance.Array(gotAPI), c.Want.Get("api"))
			changed := !esjson.Equal(conformance.Array(gotAPI), c.Input.Get("api"))
			if changed != c.Want.Bool("api_written", false) {
				t.Errorf("api changed %t, Roo wrote it %t", changed, !changed)
			}
		}
		choice = !esjson.Equal(conformance.Array(gotAPI), c.Want.Get("api"))
		if c.Want.Has("artifacts") && !choice {
			left := c.Input.Get("artifacts").Strings()
			if !c.Input.Bool("skip_cleanup", false) {
				left = outputsLeft(w.UI(), w.API(), left)
			}
			slices.Sort(left)
			text, err := json.Marshal(append([]string{}, slices.Compact(left)...))
			if err != nil {
				t.Fatal(err)
			}
			c.Same(t, "artifacts", text, c.Want.Get("artifacts"))
		}
		// What went comes back as it was, byte for byte.
		w.then(task.Undone{Undoes: w.Seq})
		for i, m := range stored(t, w.State, w.API()) {
			if string(m) != string(api[i]) {
				t.Errorf("message %d came back as %s", i, m)
			}
		}
		return choice
	})
}

// placeOf is the first row that a case takes.
func placeOf(c conformance.Case, ui [][]byte) int {
	at := int(c.Input.Int("index", 0))
	if c.Input.Str("op") == "to_timestamp" {
		at = slices.IndexFunc(ui, func(m []byte) bool {
			ts, ok := esjson.GetFloat(m, "ts")
			return ok && ts == c.Input.Float("ts")
		})
	}
	if c.Input.Bool("include_target", false) {
		at++
	}
	return at
}

// owed are the rules that a rewound model's side is judged by.
type owed struct {
	api        [][]byte
	stay, gone int
	lifts      bool
}

// broken are the rules that a result breaks. Summaries and markers go with the rows that tell of them, whatever stands around them.
func (o owed) broken(got [][]byte) (wrong []string) {
	cut, next := -1, 0
	for i, raw := range o.api {
		summary, _ := esjson.GetBool(raw, "isSummary")
		marker, _ := esjson.GetBool(raw, "isTruncationMarker")
		kept := next < len(got) && withoutTags(got[next]) == withoutTags(raw)
		switch {
		case kept:
			want := raw
			if o.lifts {
				want = tagsLeft(raw, got)
			}
			if !esjson.Equal(got[next], want) {
				wrong = append(wrong, fmt.Sprintf("message %d is left as %.300s", i, got[next]))
			}
			next++
		case cut < 0 && !summary && !marker:
			cut = i
		}
		switch {
		case summary || marker:
		case kept && cut >= 0:
			wrong = append(wrong, fmt.Sprintf("message %d goes, and message %d behind it stays", cut, i))
		case kept && i >= o.gone:
			wrong = append(wrong, fmt.Sprintf("message %d stays, of which nothing is shown any more: %.200s", i, raw))
		case !kept && i < o.stay:
			wrong = append(wrong, fmt.Sprintf("message %d goes, which rows that stay show or that came before them: %.200s", i, raw))
		}
	}
	if next < len(got) {
		wrong = append(wrong, fmt.Sprintf("%d messages are new", len(got)-next))
	}
	return wrong
}

// stored are messages as their files hold them.
func stored(t testing.TB, s *task.State, list []*task.Message) [][]byte {
	t.Helper()
	all, err := s.Raws(list)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]byte, len(all))
	for i, raw := range all {
		out[i] = raw
	}
	return out
}

// outputsLeft are those of the names of kept outputs that still belong to a visible message, by Roo's rule:
// cmd-<ts>.txt goes with the message of that time. A name of another form stays.
func outputsLeft(ui, api []*task.Message, names []string) []string {
	times := map[string]bool{}
	for _, m := range slices.Concat(ui, api) {
		times[strconv.FormatInt(m.TS(), 10)] = true
	}
	var left []string
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, "cmd-")
		digits, is := strings.CutSuffix(digits, ".txt")
		if !ok || !is || digits == "" || strings.Trim(digits, "0123456789") != "" || times[digits] {
			left = append(left, name)
		}
	}
	return left
}
