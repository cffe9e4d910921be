package task_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/task"
)

// jsonArray lays elements side by side, as a file of another program holds them, and
// says where each stands.
type jsonArray struct {
	data string
	rows []task.ForeignRow
}

func (p *jsonArray) add(message uint64, raw string) *jsonArray {
	row := task.ForeignRow{Message: message}
	if raw != "" {
		row.Off, row.Len = int64(len(p.data)), int64(len(raw))
		p.data += raw + ",\n"
	}
	p.rows = append(p.rows, row)
	return p
}

func say(ts int, text string) string {
	return fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":%q}`, ts, text)
}

func taken(h task.History, blob string, p *jsonArray) task.ForeignImported {
	return task.ForeignImported{Tool: "roo", History: h, Blob: blob, Size: int64(len(p.data)), Rows: p.rows}
}

func TestAForeignListIsTakenInRowByRow(t *testing.T) {
	blobs := blobMap{}
	w := tellWith(t, blobs, ui(1, say(1, "kept")), ui(2, say(2, "changed")), ui(3, say(3, "gone")), apiMessage(4, `{"role":"user","content":"x"}`))
	p := (&jsonArray{}).add(1, "").add(2, say(2, "edited")).add(0, say(9, "new"))
	blobs["f"] = p.data
	w.then(taken(task.UI, "f", p))
	if got := ids(w.UI()); got != "1 2 5" || ids(w.API()) != "4" {
		t.Fatalf("ui %s, api %s", got, ids(w.API()))
	}
	for i, want := range []struct {
		text    string
		foreign bool
	}{{"kept", false}, {"edited", false}, {"new", true}} {
		if m := w.UI()[i]; m.Text() != want.text || m.Foreign != want.foreign {
			t.Errorf("row %d says %q, foreign %t", i, m.Text(), m.Foreign)
		}
	}
	if m := w.Message(3); m.Hidden != "foreign" || m.Text() != "gone" {
		t.Errorf("what the file lacks is %q, hidden %q", m.Text(), m.Hidden)
	}

	p = (&jsonArray{}).add(3, "").add(5, "") // the other program brings a row back and drops two
	w.then(taken(task.UI, "f", p))
	if got := ids(w.UI()); got != "3 5" || w.Message(3).Hidden != "" || w.Message(1).Hidden != "foreign" {
		t.Errorf("ui %s", got)
	}
}

func TestARowOfTheWrongMessageIsNew(t *testing.T) {
	blobs := blobMap{}
	w := tellWith(t, blobs, ui(1, say(1, "a")), apiMessage(2, `{"role":"user","content":"x"}`)).lose()
	w.then(ui(5, say(5, "b"))) // 3 and 4 are lost
	p := (&jsonArray{}).add(1, "").add(1, say(1, "twice")).add(2, say(2, "of the other history")).add(3, say(3, "lost")).add(77, say(7, "of nobody"))
	blobs["f"] = p.data
	w.then(taken(task.UI, "f", p))
	if got := ids(w.UI()); got != "1 6 7 3 8" || ids(w.API()) != "2" {
		t.Errorf("ui %s, api %s", got, ids(w.API()))
	}
	if m := w.Message(3); m.Missing || m.Text() != "lost" { // the other program still had what we lost
		t.Errorf("got %+v, want not m.Missing and m.Text() = \"lost\"", m)
	}
	if m := w.Message(2); m.Kind() != "user" || m.Hidden != "" {
		t.Errorf("a message of the other history was touched: %s", m.Raw())
	}
}

func TestAForeignListOfNoHistoryIsRefused(t *testing.T) {
	w := tell(t, ui(1, say(1, "a")), apiMessage(2, `{"role":"user","content":"x"}`))
	for _, history := range []string{"", "UI", "both"} {
		if err := w.line(`{"type":"foreign.imported","history":"` + history + `","rows":[{},{"message":1}]}`); err == nil {
			t.Errorf("a list of the history %q was taken in", history)
		}
	}
	if ids(w.UI()) != "1" || ids(w.API()) != "2" || len(w.Problems) != 3 {
		t.Errorf("ui %s, api %s, problems %v", ids(w.UI()), ids(w.API()), w.Problems)
	}
}

func TestForeignBytesThatAreGone(t *testing.T) {
	blobs := blobMap{"f": say(1, "x"), "broken": `{"ts":1,"ty`}
	for _, c := range []struct {
		name, blob string
		row        task.ForeignRow
		text       string // of the only row afterwards
		missing    bool
	}{
		{"a change without its blob leaves the row", "gone", task.ForeignRow{Message: 1, Len: 5}, "ours", false},
		{"a change of broken bytes leaves the row", "broken", task.ForeignRow{Message: 1, Len: 11}, "ours", false},
		{"a change outside the blob leaves the row", "f", task.ForeignRow{Message: 1, Off: 3, Len: 1 << 40}, "ours", false},
		{"a new row without its blob is missing", "gone", task.ForeignRow{Len: 5}, "", true},
		{"a new row of broken bytes is missing", "broken", task.ForeignRow{Len: 11}, "", true},
		{"a new row of no bytes is missing", "f", task.ForeignRow{}, "", true},
		{"a negative length is none", "f", task.ForeignRow{Message: 1, Len: -4}, "ours", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := tellWith(t, blobs, ui(1, say(1, "ours")))
			err := w.try(task.ForeignImported{History: task.UI, Blob: c.blob, Rows: []task.ForeignRow{c.row}})
			if (c.row.Len > 0) != (err != nil) {
				t.Errorf("error %v", err)
			}
			if m := w.UI(); len(m) != 1 || m[0].Text() != c.text || m[0].Missing != c.missing {
				t.Errorf("got %s, want len(m) = 1 and m[0].Text() = c.text and m[0].Missing = c.missing", dump(w.State))
			}
		})
	}
}

// What was gone is there again when another program still had it.
func TestAForeignFileBringsLostBytesBack(t *testing.T) {
	blobs := blobMap{}
	w := tellWith(t, blobs)
	if err := w.try(task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Blob: "gone"}}); err == nil || !w.Message(1).Missing {
		t.Fatal("a message without its blob is not missing")
	}
	p := (&jsonArray{}).add(1, say(1, "found"))
	blobs["f"] = p.data
	w.then(taken(task.UI, "f", p))
	if m := w.Message(1); m.Missing || m.Text() != "found" {
		t.Errorf("missing %t: %s", m.Missing, m.Raw())
	}
}

// The rows of a list have no numbers of their own. A commit that was lost before
// it must not shift those that it gave.
func TestALostCommitShiftsNoForeignNumbers(t *testing.T) {
	p := (&jsonArray{}).add(1, "").add(0, say(9, "new"))
	e := taken(task.UI, "f", p)
	e.First = 3
	if e.News() != 1 {
		t.Fatalf("%d new messages", e.News())
	}
	w := tellWith(t, blobMap{"f": p.data}, ui(1, say(1, "a"))).lose() // the lost one added message 2
	w.then(e).then(task.MessageChanged{Message: 3, Body: body(say(9, "changed"))})
	if got := ids(w.UI()); got != "1 3" || w.UI()[1].Text() != "changed" || w.Message(2).Hidden != "lost" {
		t.Errorf(`got %s, want got = "1 3" and w.UI()[1].Text() = "changed" and w.Message(2).Hidden = "lost"`,
			dump(w.State))
	}
	e.First = 1 << 50
	if err := w.try(e); err == nil || ids(w.UI()) != "1 3" {
		t.Errorf("a number far away was believed: %v", err)
	}
}

// A message whose first commit is lost may have been changed since. Another program
// that kept it says only where it belongs.
func TestAForeignListPlacesAMessageWhoseCommitIsLost(t *testing.T) {
	reply := strings.Replace(assistant("c1"), `"ts":5`, `"ts":8`, 1)
	w := tell(t, apiMessage(1, `{"role":"user","content":"x"}`)).lose()
	w.then(ui(4, say(4, "a"))) // 2 and 3 are lost
	w.then(task.MessageChanged{Message: 2, Body: body(reply)})
	w.then(task.ForeignImported{History: task.API, Rows: []task.ForeignRow{{Message: 1}, {Message: 2}, {Message: 3}}})
	for name, s := range map[string]*task.State{"folded": w.State, "lean": w.again(0), "restored": w.restored(0)} {
		if ids(s.API()) != "1 2 3" || string(s.Message(2).Raw()) != reply || s.Message(2).Kind() != "assistant" || s.Message(2).Missing {
			t.Errorf(`%s: got %s, want ids(s.API()) = "1 2 3" and string(s.Message(2).Raw()) = reply and s.Message(2).Kind() = "assistant" and not s.Message(2).Missing`,
				name, dump(s))
		}
		if !s.Message(3).Missing || s.Replies != 1 || openIDs(s) != "c1:not_started" {
			t.Errorf("%s: %d replies, open %q", name, s.Replies, openIDs(s))
		}
	}
}

func TestALongForeignListLiesInABlob(t *testing.T) {
	blobs := blobMap{}
	p := &jsonArray{}
	for i := range 500 {
		p.add(0, say(i+1, "row"))
	}
	rows, err := json.Marshal(p.rows)
	if err != nil {
		t.Fatal(err)
	}
	blobs["f"], blobs["rows"] = p.data, string(rows)
	w := tellWith(t, blobs, ui(1, say(1, "ours")))
	if err := w.try(task.ForeignImported{History: task.UI, Blob: "f", RowsBlob: "lost"}); err == nil || ids(w.UI()) != "1" {
		t.Fatalf("a list that is gone hid ours: %v, ui %s", err, ids(w.UI()))
	}
	blobs["odd"] = `{"message":1}`
	if err := w.try(task.ForeignImported{History: task.UI, Blob: "f", RowsBlob: "odd"}); err == nil || ids(w.UI()) != "1" {
		t.Fatalf("what is no list hid ours: %v, ui %s", err, ids(w.UI()))
	}
	w.then(task.ForeignImported{History: task.UI, Blob: "f", RowsBlob: "rows"})
	if len(w.UI()) != 500 || w.UI()[499].TS() != 500 || w.Message(1).Hidden != "foreign" {
		t.Errorf("%d rows", len(w.UI()))
	}
}

// Whether another program started a call is not known: it never runs by itself.
func TestCallsOfAnotherProgramAreUnknown(t *testing.T) {
	blobs := blobMap{}
	w := tellWith(t, blobs, apiMessage(1, `{"role":"user","content":"x"}`), apiMessage(2, `{"role":"assistant","content":"thinking","ts":5}`))
	p := (&jsonArray{}).add(1, "").add(2, assistant("c1"))
	blobs["f"] = p.data
	w.then(taken(task.API, "f", p))
	if got := openIDs(w.State); got != "c1:unknown" {
		t.Errorf("a call that was put into our reply is %q", got)
	}
	p = (&jsonArray{}).add(1, "").add(2, "").add(0, results("c1")).add(0, assistant("c2"))
	blobs["g"] = p.data
	w.then(taken(task.API, "g", p))
	if got := openIDs(w.State); got != "c2:unknown" || w.Call("c1").Outcome() != task.OutcomeFinished {
		t.Errorf("open %q", got)
	}
	w.then(apiMessage(5, results("c2")), apiMessage(6, assistant("c3")))
	if got := openIDs(w.State); got != "c3:not_started" {
		t.Errorf("our own call behind theirs is %q", got)
	}
}

func TestOurOwnOpenCallStaysOursWhenItsReplyIsReformatted(t *testing.T) {
	blobs := blobMap{}
	w := tellWith(t, blobs, apiMessage(1, assistant("c1")))
	p := (&jsonArray{}).add(1, strings.Replace(assistant("c1"), `"ts":5`, `"ts":5,"extra":true`, 1))
	blobs["f"] = p.data
	w.then(taken(task.API, "f", p))
	if got := openIDs(w.State); got != "c1:not_started" {
		t.Errorf("open %q", got)
	}
}

// The scripted model counts replies and the failures since the last one.
func TestAForeignReplyEndsTheFailures(t *testing.T) {
	blobs := blobMap{}
	w := tellWith(t, blobs, apiMessage(1, `{"role":"user","content":"x"}`)).then(task.TurnFailed{}, task.TurnFailed{})
	p := (&jsonArray{}).add(1, "").add(0, `{"role":"assistant","content":"from Roo"}`)
	blobs["f"] = p.data
	w.then(taken(task.API, "f", p))
	if w.Replies != 1 || w.Failures != 0 {
		t.Errorf("%d replies, %d failures since", w.Replies, w.Failures)
	}
	w.then(task.TurnFailed{})
	p = (&jsonArray{}).add(1, "").add(2, "").add(0, `{"role":"user","content":"y"}`)
	blobs["g"] = p.data
	w.then(taken(task.API, "g", p))
	if w.Failures != 1 {
		t.Errorf("a foreign user turn changed the failures to %d", w.Failures)
	}
}

func TestWhatWasRefusedIsKeptInWords(t *testing.T) {
	w := tell(t, ui(1, say(1, "a")))
	no := task.ForeignRefused{Name: "ui_messages.json", Blob: "b", Size: 2, Reason: "it has become an empty list"}
	w.then(no)
	if r := w.restored(0); len(r.Refused) != 1 || r.Refused[0] != no || ids(r.UI()) != "1" {
		t.Errorf("got %+v, want len(r.Refused) = 1 and r.Refused[0] = no and ids(r.UI()) = \"1\"", r.Refused)
	}
}
