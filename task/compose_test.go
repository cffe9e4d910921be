package task_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
)

func composed(id uint64, pieces ...task.Piece) task.Event {
	return task.MessageAdded{History: task.API, Message: id, Body: task.Body{Compose: pieces}}
}

func lit(s string) task.Piece       { return task.Piece{Literal: s} }
func textOf(id uint64) task.Piece   { return task.Piece{TextOf: id} }
func result(call string) task.Piece { return task.Piece{Result: call} }

// What a message is composed of is what the log held at that moment.
func TestWhatAMessageIsComposedOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []task.Piece
		want   string // "" = it cannot be composed
	}{
		{"literals only", []task.Piece{lit(`{"a":`), lit(``), lit(`1}`)}, `{"a":1}`},
		{"text", []task.Piece{lit(`{"t":`), textOf(1), lit(`}`)}, `{"t":"one\n"}`},
		{"text alone", []task.Piece{textOf(1)}, `"one\n"`},
		{"no text was saved", []task.Piece{textOf(2)}, `""`},
		{"a result", []task.Piece{lit(`[`), result("c1"), lit(`]`)}, `[` + resultOf("c1", "r1") + `]`},
		{"results in another order", []task.Piece{lit(`[`), result("c2"), lit(`,`), result("c1"), lit(`]`)}, `[` + resultOf("c2", "r2") + `,` + resultOf("c1", "r1") + `]`},
		{"everything twice", []task.Piece{lit(`[`), result("c1"), lit(`,`), textOf(1), lit(`,`), result("c1"), lit(`,`), textOf(1), lit(`]`)},
			`[` + resultOf("c1", "r1") + `,"one\n",` + resultOf("c1", "r1") + `,"one\n"]`},
		{"text of nobody", []task.Piece{textOf(99)}, ""},
		{"text of itself, before it is there", []task.Piece{textOf(4)}, ""},
		{"the result of nobody", []task.Piece{result("c9")}, ""},
		{"the result of an open call", []task.Piece{result("open")}, ""},
		{"pieces that make no JSON", []task.Piece{lit(`{"a":`), textOf(1)}, ""},
		{"two values", []task.Piece{textOf(1), textOf(1)}, ""},
		{"a text that a literal opens", []task.Piece{lit(`"`), textOf(1), lit(`"`)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := tell(t, ui(1, `{"text":""}`), ui(2, `{"text":"its own"}`), apiMessage(3, assistant("c1", "c2", "open")))
			w.then(task.MessageTextSaved{Message: 1, Text: "one\n"}, finished("c1", "r1"), finished("c2", "r2"), task.ToolStarted{Call: "open"})
			err := w.try(composed(4, c.pieces...))
			if (err == nil) != (c.want != "") {
				t.Fatalf("got %v, want (err == nil) = (c.want != \"\")", err)
			}
			want := c.want
			if want == "" {
				want = "{}"
			}
			// What comes later does not change what was composed.
			w.then(task.MessageTextSaved{Message: 1, Text: "two"}, finished("c1", "other"))
			for name, s := range map[string]*task.State{"folded": w.State, "lean": w.again(0), "restored": w.restored(0)} {
				m := s.Message(4)
				if got := string(m.Raw()); got != want || m.Missing != (c.want == "") {
					t.Errorf("%s: %s, missing %t", name, got, m.Missing)
				}
			}
		})
	}
}

// The last state of a streamed row refers to its own text, and may do so again.
func TestARowOfItsOwnText(t *testing.T) {
	change := task.MessageChanged{Message: 1, Body: task.Body{Compose: []task.Piece{lit(`{"text":`), textOf(1), lit(`}`)}}}
	w := tell(t, ui(1, `{"text":"shown before"}`), task.MessageTextSaved{Message: 1, Text: "a"})
	w.then(change).then(task.MessageTextSaved{Message: 1, Text: "b"})
	if got := w.Message(1).Text(); got != "ab" {
		t.Errorf("streamed on: %q", got)
	}
	w.then(change).then(change)
	for name, s := range map[string]*task.State{"folded": w.State, "lean": w.again(0), "restored": w.restored(0)} {
		if got := string(s.Message(1).Raw()); got != `{"text":"ab"}` {
			t.Errorf("%s: got %s, want got = `{\"text\":\"ab\"}`", name, got)
		}
	}
}

func TestAChangeThatCannotBeComposedChangesNothing(t *testing.T) {
	w := tell(t, apiMessage(1, assistant("c1")))
	before := dump(w.State)
	for _, b := range []task.Body{
		{Compose: []task.Piece{textOf(9)}}, {Compose: []task.Piece{result("c1")}}, {Compose: []task.Piece{lit("{")}}, {Blob: "gone"},
	} {
		if err := w.try(task.MessageChanged{Message: 1, Body: b}); err == nil {
			t.Errorf("%+v was folded", b)
		}
	}
	w.Problems, w.Seq, w.UpdatedAt = nil, 1, 1001
	if dump(w.State) != before {
		t.Error("the message is another one")
	}
}

func TestLargeContentLiesInABlob(t *testing.T) {
	large := assistant("c1")
	blobs := blobMap{"m": large, "cut": large[:20], "r": resultOf("c1", strings.Repeat("x", 1000))}
	w := tellWith(t, blobs, task.MessageAdded{History: task.API, Message: 1, Body: task.Body{Blob: "m"}})
	w.then(task.ToolFinished{Call: "c1", Blob: "r", Outcome: "ok"}).then(answers(2, "c1"))
	if err := w.try(task.MessageAdded{History: task.API, Message: 3, Body: task.Body{Blob: "cut"}}); err == nil || !w.Message(3).Missing {
		t.Errorf("a blob that holds half of it: %v", err)
	}
	want := `{"role":"user","content":[` + blobs["r"] + `],"ts":6}`
	for name, s := range map[string]*task.State{"folded": w.State, "lean": w.again(0), "restored": w.restored(0)} {
		if string(s.API()[0].Raw()) != large || string(s.API()[1].Raw()) != want || !s.Call("c1").Answered {
			t.Errorf("%s: got %s, want string(s.API()[0].Raw()) = large and string(s.API()[1].Raw()) = %v and s.Call(\"c1\").Answered",
				name, s.API()[1].Raw(), want)
		}
	}
	blobs["m"] = large[1:] // damaged since
	if _, err := w.restored(0).RawAPI(); err == nil || !strings.Contains(err.Error(), "message 1") {
		t.Errorf("a message of damaged bytes was read: %v", err)
	}
}

// A message's bytes are its own: what the caller does with the commit's memory
// afterwards is nothing to the state.
func TestAStateSharesNoMemoryWithItsLog(t *testing.T) {
	c := encode(t, 1, ui(1, say(1, "a")), apiMessage(2, assistant("c1")), finished("c1", "r"), task.MessageTextSaved{Message: 1, Text: "b"})
	s := task.New(nil)
	if err := s.Apply(c); err != nil {
		t.Fatal(err)
	}
	before := dump(s)
	for _, e := range c.Events {
		for i := range e {
			e[i] = '#'
		}
	}
	if dump(s) != before {
		t.Error("the state changed with the log's memory")
	}
}

// A turn that lacks a result is one that no provider takes.
func TestAnOutcomeWithoutAResultComposesNothing(t *testing.T) {
	w := tell(t, apiMessage(1, assistant("c1")))
	if err := w.line(`{"type":"tool.finished","call":"c1","outcome":"ok"}`); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Call("c1").Result(); got != nil || err != nil {
		t.Errorf("got %s %v, want got = nil and no error", got, err)
	}
	if err := w.try(answers(2, "c1")); err == nil || !w.Message(2).Missing {
		t.Errorf("composed %s", w.Message(2).Raw())
	}
}

// Nesting has no end in JSON. A message of any depth is kept, shown and compared.
func TestDeepMessagesAreKept(t *testing.T) {
	const depth = 200_000
	deep := `{"ts":1,"type":"say","say":"text","x":` + strings.Repeat(`[{"a":`, depth) + `1` + strings.Repeat(`}]`, depth) + `}`
	w := tellWith(t, blobMap{"f": deep}, ui(1, deep))
	w.then(task.MessageTextSaved{Message: 1, Text: "t"})
	if !strings.HasSuffix(string(w.Message(1).Raw()), `]}],"text":"t"}`) && w.Message(1).Text() != "t" {
		t.Error("the text is not in it")
	}
	if m := foreign.Compare(w.UI(), task.UI, [][]byte{w.Message(1).Raw()}); !m.Same() {
		t.Errorf("it is not the same as itself: %v", m.Changed)
	}
	w.then(task.ForeignImported{History: task.UI, Blob: "f", Rows: []task.ForeignRow{{Message: 1, Len: int64(len(deep))}}})
	if got := w.restored(0).Message(1).Raw(); string(got) != deep {
		t.Errorf("%d bytes came back as %d", len(deep), len(got))
	}
}

// A long task is mostly results. What a message is composed of is in memory once, in the
// message, and takes no more room there than it has bytes.
func TestAResultIsInMemoryOnce(t *testing.T) {
	w := tell(t, apiMessage(1, assistant("c1", "c2", "c3")), finished("c1", strings.Repeat("a", 5000)), finished("c2", strings.Repeat("b", 700)), finished("c3", "rest"))
	w.then(composed(2, lit(`{"role":"user","content":[`), result("c2"), lit(`,`), result("c1"), lit(`],"ts":1}`)))
	raw := w.Message(2).Raw()
	if cap(raw) > len(raw)+len(raw)/8 {
		t.Errorf("%d bytes take the room of %d", len(raw), cap(raw))
	}
	for call, want := range map[string]string{"c1": strings.Repeat("a", 5000), "c2": strings.Repeat("b", 700), "c3": "rest"} {
		got, err := w.Call(call).Result()
		if err != nil || string(got) != resultOf(call, want) {
			t.Fatalf("%s: %.80s, %v", call, got, err)
		}
		at := bytes.Index(raw, got)
		if held := at >= 0 && &raw[at] == &got[0]; held != (call != "c3") {
			t.Errorf("%s: held by the message: %t", call, held)
		}
		if cap(got) != len(got) && call != "c3" {
			t.Errorf("%s: who appends to it writes into the message", call)
		}
	}
	// What becomes of the message is nothing to the calls.
	before := string(raw)
	w.then(task.MessageChanged{Message: 2, Body: task.Body{Raw: []byte(`{"role":"user","content":"short"}`)}})
	w.then(finished("c2", "again"))
	if got, err := w.Call("c1").Result(); err != nil || string(got) != resultOf("c1", strings.Repeat("a", 5000)) || string(raw) != before {
		t.Errorf("%.80s, %v", got, err)
	}
}
