package task_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// failer is a test, or one case of a property.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// noted takes notes of elements as a reader of their file does.
func noted(h task.History, elements []string) *task.Notes {
	n := task.NewNotes(h)
	var x esjson.Index
	for _, e := range elements {
		if x.Read([]byte(e), 3) {
			n.Note(&x)
		}
	}
	return n
}

// folder is two files and the event that adopts them.
type folder struct {
	ui, api []string
	blobs   blobMap
	event   task.Adopted
}

func newFolder(ui, api []string) folder {
	uiFile, uiSpans := list(ui...)
	apiFile, apiSpans := list(api...)
	return folder{ui: ui, api: api, blobs: blobMap{"u": uiFile, "a": apiFile}, event: task.Adopted{
		Task: "t", Tool: "roo", CreatedAt: 5, Item: json.RawMessage(`{"number":7}`),
		Files: []task.Original{original(task.UI, "u", uiSpans...), original(task.API, "a", apiSpans...)},
	}}
}

func (f folder) notes() map[string]*task.Notes {
	return map[string]*task.Notes{"u": noted(task.UI, f.ui), "a": noted(task.API, f.api)}
}

// folded is the state that committing the adoption gives to a reader.
func (f folder) folded(t failer) *task.State {
	t.Helper()
	s := task.New(nil).Lean(memory{blobMap: f.blobs}, 1<<20)
	raw, err := task.Encode(f.event)
	if err == nil {
		err = s.Apply(journal.Commit{Seq: 1, At: 5, Events: []journal.Event{raw}})
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

func (f folder) adopted(noted map[string]*task.Notes) *task.State {
	s := task.New(nil).Lean(memory{blobMap: f.blobs}, 1<<20)
	s.Adopt(f.event, noted)
	return s
}

// same compares all that two states say. The number of the commit is left out: nothing is committed for a reader.
func same(t failer, want, got *task.State) {
	t.Helper()
	want.Seq, got.Seq = 0, 0
	if d := cmp.Diff(dump(want), dump(got)); d != "" {
		t.Fatalf("what the states say:\n%s", d)
	}
	for i, m := range want.UI() {
		a, okA := m.Spent()
		b, okB := got.UI()[i].Spent()
		if okA != okB || a != b || m.Partial() != got.UI()[i].Partial() {
			t.Fatalf("row %d: got %+v %t, want %+v %t", i, b, okB, a, okA)
		}
	}
}

// asWritten compares a state with what each element says when it is asked by itself, member by member.
func asWritten(t failer, f folder, s *task.State) {
	t.Helper()
	member := func(raw, key string) string {
		val, _ := esjson.GetString([]byte(raw), key)
		return val
	}
	for i, raw := range f.ui {
		m, typ := s.UI()[i], member(raw, "type")
		ts, _ := esjson.GetInt([]byte(raw), "ts")
		partial, _ := esjson.GetBool([]byte(raw), "partial")
		if kind := typ + ":" + member(raw, typ); m.Kind() != kind || m.TS() != ts || m.Partial() != partial {
			t.Fatalf("%s is %q at %d, %t", raw, m.Kind(), m.TS(), m.Partial())
		}
		text, _ := esjson.Get([]byte(raw), "text")
		condense, _ := esjson.Get([]byte(raw), "contextCondense")
		want, wanted := usage.SpentOf(member(raw, "say"), text, condense)
		if typ != "say" {
			want, wanted = usage.Tokens{}, false
		}
		got, ok := m.Spent()
		if ok != wanted || got != want {
			t.Fatalf("%s spent %v %t, want %v %t", raw, got, ok, want, wanted)
		}
	}
	replies, calls := 0, []string{}
	for i, raw := range f.api {
		if got := s.API()[i].Kind(); got != member(raw, "role") {
			t.Fatalf("%s is of %q", raw, got)
		}
		if summary, _ := esjson.GetBool([]byte(raw), "isSummary"); member(raw, "role") != "assistant" {
			continue
		} else if !summary {
			replies++
		}
		content, _ := esjson.Get([]byte(raw), "content")
		for block := range esjson.Array(content) {
			if id := member(string(block), "id"); member(string(block), "type") == "tool_use" && !slices.Contains(calls, id) {
				calls = append(calls, id)
			}
		}
	}
	made := []string{}
	for _, c := range s.Calls() {
		made = append(made, c.ID)
	}
	if s.Replies != replies || !slices.Equal(made, calls) {
		t.Fatalf("%d replies and calls %q, want %d and %q", s.Replies, made, replies, calls)
	}
}

// Notes that were taken while a file was read make the state that reading it a second time makes, whatever stands in it.
func TestNotesSayWhatTheFileSays(t *testing.T) {
	id := rapid.SampledFrom([]string{`"c1"`, `"c2"`, `"c3"`, `7`, `null`, `"\u0063\u0031"`})
	word := rapid.SampledFrom([]string{
		`"ask"`, `"say"`, `"tool"`, `"text"`, `"api_req_started"`, `"condense_context"`, `"completion_result"`, `"user"`, `"assistant"`,
		`"\u0073ay"`, `"unheard of"`, `""`, `3`, `null`, `true`, `[]`, `{"type":"say"}`,
	})
	number := rapid.SampledFrom([]string{`1767000000000`, `5.5`, `-1`, `1e3`, `"7"`, `null`, `1e400`})
	text := rapid.SampledFrom([]string{
		`"words"`, `"{\"tokensIn\":12,\"cost\":0.1}"`, `"{\"request\":\"a\\nb \\\"c\\\"\",\"tokensIn\":1,\"tokensIn\":2,\"cacheReads\":3}"`,
		`"{\"tokensIn\":"`, `"\u007b\"cost\":1e-3}"`, `"日本\ud83d \\\\"`, `7`, `null`,
	})
	member := func(t *rapid.T, name string, values ...*rapid.Generator[string]) string {
		if rapid.IntRange(0, 3).Draw(t, name+"?") == 0 {
			return ""
		}
		return fmt.Sprintf(`,%q:%s`, name, rapid.OneOf(values...).Draw(t, name))
	}
	object := func(parts ...string) string {
		return "{" + strings.TrimPrefix(strings.Join(parts, ""), ",") + "}"
	}
	odd := rapid.SampledFrom([]string{`7`, `"x"`, `[]`, `[{"type":"say"}]`, `{}`, `null`, `{"":"x","type":""}`, `{"type":"unknown","unknown":"x","unknown":"y"}`})
	row := rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			return odd.Draw(t, "row")
		}
		return object(member(t, "ts", number), member(t, "type", word), member(t, "say", word), member(t, "ask", word),
			member(t, "text", text), member(t, "partial", word), member(t, "say", word),
			member(t, "contextCondense", rapid.SampledFrom([]string{`{"cost":0.5,"newContextTokens":9}`, `{"cost":"x"}`, `[]`})))
	})
	block := rapid.Custom(func(t *rapid.T) string {
		kind := rapid.SampledFrom([]string{`"tool_use"`, `"tool_result"`, `"text"`, `4`})
		return object(member(t, "type", kind), member(t, "id", id), member(t, "name", word), member(t, "tool_use_id", id), member(t, "input", odd), member(t, "id", id))
	})
	turn := rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			return odd.Draw(t, "turn")
		}
		blocks := "[" + strings.Join(rapid.SliceOfN(rapid.OneOf(block, odd), 0, 4).Draw(t, "blocks"), ", ") + "]"
		return object(member(t, "role", word), member(t, "content", rapid.Just(blocks), text), member(t, "ts", number), member(t, "isSummary", word))
	})
	rapid.Check(t, func(t *rapid.T) {
		f := newFolder(rapid.SliceOfN(row, 0, 12).Draw(t, "ui"), rapid.SliceOfN(turn, 0, 12).Draw(t, "api"))
		s := f.adopted(f.notes())
		asWritten(t, f, s)
		same(t, f.folded(t), s)
	})
}

// A file that is noted is not read until somebody asks for a message, and then that message is.
func TestNotedMessagesAreReadWhenAskedFor(t *testing.T) {
	var elements []string
	for i := range 300 {
		elements = append(elements, say(i+1, strings.Repeat("x", 100)))
	}
	f := newFolder(elements, nil)
	src := &measured{blobMap: f.blobs}
	s := task.New(nil).Lean(memory{blobMap: f.blobs}, 1<<20).With(src)
	s.Adopt(f.event, f.notes())
	if src.reads != 0 || s.Holding() != 0 || len(s.UI()) != 300 || s.LastTS() != 300 {
		t.Fatalf("%d readings, %d bytes, %d rows to %d", src.reads, s.Holding(), len(s.UI()), s.LastTS())
	}
	page, err := s.Raws(s.UI()[280:])
	if err != nil || src.reads != len(page) {
		t.Fatalf("got %d readings, %v, want %d", src.reads, err, len(page))
	}
	for i, raw := range page {
		if string(raw) != elements[280+i] {
			t.Fatalf("row %d is %s", 280+i, raw)
		}
	}
}

// Notes of other elements, or of another history, are not believed.
func TestNotesThatDoNotFitAreNotUsed(t *testing.T) {
	f := newFolder([]string{say(1, "a"), say(2, "b")}, []string{assistant("c1")})
	want := f.folded(t)
	for name, n := range map[string]map[string]*task.Notes{
		"none":            nil,
		"too few":         {"u": noted(task.UI, f.ui[:1])},
		"another history": {"u": noted(task.API, f.ui)},
		"another file":    {"x": noted(task.UI, f.ui)},
	} {
		t.Run(name, func(t *testing.T) { same(t, want, f.adopted(n)) })
	}
}

// Each message is what it is: across files, gaps, a hole in the middle, and bounds that no file has.
func TestMessagesAreReadInStretches(t *testing.T) {
	long := say(3, strings.Repeat("long ", 1<<20)) // more than one reading takes
	f := newFolder([]string{say(1, "a"), say(2, "b"), long, say(4, "d"), say(5, "e")}, []string{assistant("c1"), results("c1"), assistant("c2")})
	s := f.adopted(f.notes())
	all := slices.Concat(s.UI(), s.API())
	for _, order := range [][]*task.Message{all, s.UI()[3:], slices.Concat(s.API()[1:], s.UI()[:2], s.API()[:1]), {all[4], all[0], all[0], all[7]}} {
		got, err := s.Raws(order)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range order {
			if want := append(slices.Clone(f.ui), f.api...)[m.ID-1]; string(got[i]) != want {
				t.Errorf("message %d is %.60s", m.ID, got[i])
			}
		}
	}
	f.blobs["u"] = f.blobs["u"][:20] // it was cut meanwhile
	if _, err := s.Raws(s.UI()[3:]); err == nil {
		t.Error("messages behind the end of their file were read")
	}
	if got, err := s.Raws(s.API()); err != nil || len(got) != 3 {
		t.Errorf("%d of the other file: %v", len(got), err)
	}
}
