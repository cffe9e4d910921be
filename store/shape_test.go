package store

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// said is role and content of each message that is sent, by the tags.
func said(history [][]byte) []string {
	from := 0
	for i, raw := range history {
		if summary, _ := esjson.GetBool(raw, "isSummary"); summary {
			from = i
		}
	}
	markers := map[string]bool{}
	for _, raw := range history {
		if id, ok := esjson.GetString(raw, "truncationId"); ok {
			markers[id] = true
		}
	}
	var out []string
	for _, raw := range history[from:] {
		if hidden, ok := esjson.GetString(raw, "truncationParent"); ok && markers[hidden] {
			continue
		}
		role, _ := esjson.GetString(raw, "role")
		content, _ := esjson.Get(raw, "content")
		out = append(out, role+" "+string(content))
	}
	return out
}

// sentByCline is the same as Cline does it: without tags, and with the results of the first turn after the gap gone.
func sentByCline(history [][]byte, last int) []string {
	var out []string
	for i, raw := range history {
		role, _ := esjson.GetString(raw, "role")
		content, _ := esjson.Get(raw, "content")
		if i >= 2 && i <= last {
			continue
		}
		if i == last+1 && role == "user" && esjson.TypeOf(content) == esjson.TypeArray {
			var keep []string
			for b := range esjson.Array(content) {
				if !strings.Contains(string(b), "tool_result") {
					keep = append(keep, string(b))
				}
			}
			if len(keep) == 0 {
				continue
			}
			content = []byte("[" + strings.Join(keep, ",") + "]")
		}
		out = append(out, role+" "+string(content))
	}
	return out
}

// turns is a history of n messages with a tool call in each turn, as Cline stores it.
func turns(n int, words bool) []string {
	var list []string
	for i := range n {
		switch {
		case i%2 == 1:
			list = append(list, fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"a%d"},{"type":"tool_use","id":"t%d","name":"read_file","input":{}}],"ts":%d}`, i, i, ts0+i))
		case i == 0:
			list = append(list, apiRow(i, "user", "q0"))
		case words:
			list = append(list, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"r%d"},{"type":"text","text":"q%d"}],"ts":%d}`, i-1, i, i, ts0+i))
		default:
			list = append(list, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"r%d"}],"ts":%d}`, i-1, i, ts0+i))
		}
	}
	return list
}

func bytesOf(list []string) [][]byte {
	var out [][]byte
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

func TestShapeSendsWhatClineSends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 40).Draw(t, "messages")
		history := bytesOf(turns(n, rapid.Bool().Draw(t, "words")))
		if rapid.Bool().Draw(t, "text content") {
			history[n-1] = []byte(`{"role":"user","content":"plain","ts":1}`)
		}
		last := rapid.IntRange(2, n-2).Draw(t, "last")
		var got [][]byte
		seen := 0
		for _, p := range shapeDeleted(history, 2, last) {
			if p.from >= 0 {
				if p.from != seen {
					t.Fatalf("message %d comes after %d others", p.from, seen)
				}
				seen++
				if role, _ := esjson.GetString(p.raw, "role"); !strings.HasPrefix(string(history[p.from]), `{"role":"`+role) {
					t.Fatalf("message %d is another one: %s", p.from, p.raw)
				}
			}
			got = append(got, p.raw)
		}
		if seen != n {
			t.Fatalf("%d of %d messages are left", seen, n)
		}
		if d := cmp.Diff(sentByCline(history, last), said(got)); d != "" {
			t.Fatal(d)
		}
	})
}

// deletedStorage is a storage of classic Cline with a task of which the beginning is not sent any more.
func deletedStorage(t testing.TB, id string, n, last int) (storage, dir string) {
	storage = filepath.Join(t.TempDir(), "saoudrizwan.claude-dev")
	dir = filepath.Join(storage, "tasks", id)
	write(t, dir, roofmt.UIName, array(fourRows[:2]...))
	write(t, dir, roofmt.APIName, array(turns(n, true)...))
	writeRange(t, storage, id, last)
	return storage, dir
}

func writeRange(t testing.TB, storage, id string, last int) {
	write(t, filepath.Join(storage, "state"), "taskHistory.json", fmt.Sprintf(`[{"id":%q,"ts":%d,"task":"dig","cwdOnTaskInitialization":"/garden","isFavorited":true,"conversationHistoryDeletedRange":[2,%d]}]`, id, ts0, last))
}

func sent(t testing.TB, s *Store, ref Ref) []string {
	t.Helper()
	v := must[*View](t)(s.Read(context.Background(), ref))
	defer v.Close()
	history, _, err := v.Sent()
	check(t, err)
	return said(history)
}

func TestAForkSendsWhatClineSent(t *testing.T) {
	const id = "1730047571772"
	storage, dir := deletedStorage(t, id, 10, 5)
	root := t.TempDir()
	s := open(t, root, storage)
	before := tree(t, storage)
	ref := foreignRef(t, s, id)
	want := sentByCline(bytesOf(turns(10, true)), 5)
	if d := cmp.Diff(want, sent(t, s, ref)); d != "" {
		t.Errorf("before it goes on: %s", d)
	}
	if v := view(t, s, id); len(v.State.API()) != 10 {
		t.Errorf("looking hides %d messages", 10-len(v.State.API()))
	}
	o := must[*Owned](t)(s.Own(context.Background(), ref))
	if d := cmp.Diff(want, said(must[[][]byte](t)(o.Task.State().RawAPI()))); d != "" {
		t.Errorf("the fork: %s", d)
	}
	if n := len(o.Task.State().API()); n != 11 || !o.Task.State().Pinned {
		t.Errorf("%d messages, pinned %v", n, o.Task.State().Pinned)
	}
	commit(t, o.Task, task.API, apiRow(90, "user", "on"))
	want = append(want, `user [{"type":"text","text":"on"}]`)
	fork := o.Task.Ref
	closeTask(t, o.Task)
	for range 2 {
		again := must[*Owned](t)(s.Own(context.Background(), ref))
		if d := cmp.Diff(want, said(must[[][]byte](t)(again.Task.State().RawAPI()))); d != "" || !again.Again || len(again.Intakes) != 0 {
			t.Errorf("again: %+v %s", again.Intakes, d)
		}
		closeTask(t, again.Task)
	}
	// The files that Roo opens say the same, and so does reading them without the journal.
	elements := []string{}
	for raw := range esjson.Array([]byte(read(t, fork.Dir, roofmt.APIName))) {
		elements = append(elements, string(raw))
	}
	if d := cmp.Diff(want, said(bytesOf(elements))); d != "" {
		t.Errorf("Roo's file: %s", d)
	}
	if d := cmp.Diff(before, tree(t, storage)); d != "" {
		t.Errorf("%s was changed: %s", dir, d)
	}
}

// While the fork stands still, the original may go on, and delete more.
func TestAForkFollowsWhatClineDeletes(t *testing.T) {
	const id = "1730047571772"
	for name, c := range map[string]struct{ n, last int }{
		"it only grew":             {14, 5},
		"it grew and deleted more": {14, 9},
		"it deleted all it may":    {14, 12},
	} {
		t.Run(name, func(t *testing.T) {
			storage, dir := deletedStorage(t, id, 10, 5)
			s := open(t, t.TempDir(), storage)
			ref := foreignRef(t, s, id)
			closeTask(t, must[*Owned](t)(s.Own(context.Background(), ref)).Task)
			write(t, dir, roofmt.APIName, array(turns(c.n, true)...))
			writeRange(t, storage, id, c.last)
			for range 2 {
				o := must[*Owned](t)(s.Own(context.Background(), ref))
				for _, in := range o.Intakes {
					if in.Refused != "" {
						t.Errorf("refused: %s", in.Refused)
					}
				}
				if d := cmp.Diff(sentByCline(bytesOf(turns(c.n, true)), c.last), said(must[[][]byte](t)(o.Task.State().RawAPI()))); d != "" {
					t.Error(d)
				}
				closeTask(t, o.Task)
			}
		})
	}
}

// An import takes the range along, although the list that holds it stays behind.
func TestAnImportSendsWhatClineSent(t *testing.T) {
	const id = "1730047571772"
	_, dir := deletedStorage(t, id, 10, 5)
	s := open(t, t.TempDir())
	if n := must[int](t)(Rooms.Import(t.Context(), s, dir)); n != 1 {
		t.Fatalf("imported %d tasks, want 1", n)
	}
	want := sentByCline(bytesOf(turns(10, true)), 5)
	ref := must[Ref](t)(s.Find(context.Background(), id))
	if d := cmp.Diff(want, sent(t, s, ref)); d != "" {
		t.Errorf("before it goes on: %s", d)
	}
	o := own(t, s, id)
	if d := cmp.Diff(want, said(must[[][]byte](t)(o.Task.State().RawAPI()))); d != "" {
		t.Errorf("the import: %s", d)
	}
	closeTask(t, o.Task)
	if ids := must[[]string](t)(names(s.TasksDir())); !slices.Equal(ids, []string{id}) {
		t.Errorf("%v", ids)
	}
}

// What stands for a session goes with the fork, and what it stands for stays there.
func TestAForkOfACondensedSession(t *testing.T) {
	data, dir := clineData(t)
	write(t, dir, sessionID+".compaction.json", `{"version":1,"source_message_count":2,"source_last_message_key":"id:b","messages":[{"role":"user","content":"in short","id":"s1"},{"role":"assistant","content":"so it is","id":"s2"}]}`)
	s := open(t, t.TempDir(), data)
	ref := foreignRef(t, s, sessionID)
	want := []string{`user "in short"`, `assistant "so it is"`, `user [{"type":"tool_result","tool_use_id":"t1","name":"read_files","content":"x"}]`}
	if d := cmp.Diff(want, sent(t, s, ref)); d != "" {
		t.Errorf("before it goes on: %s", d)
	}
	o := own(t, s, sessionID)
	if d := cmp.Diff(want, said(must[[][]byte](t)(o.Task.State().RawAPI()))); d != "" || len(o.Task.State().API()) != 5 {
		t.Errorf("%d messages: %s", len(o.Task.State().API()), d)
	}
	closeTask(t, o.Task)
	// The session goes on in Cline: the fork has it, and is still condensed.
	grown := strings.Replace(read(t, dir, roofmt.TranscriptName(sessionID)), "\n  ]", ",\n{\"role\":\"assistant\",\"content\":\"more\",\"id\":\"d\",\"ts\":1776200000009}\n  ]", 1)
	write(t, dir, roofmt.TranscriptName(sessionID), grown)
	o = own(t, s, sessionID)
	if d := cmp.Diff(append(want, `assistant "more"`), said(must[[][]byte](t)(o.Task.State().RawAPI()))); d != "" || len(o.Intakes) != 1 || o.Intakes[0].Refused != "" {
		t.Errorf("%+v: %s", o.Intakes, d)
	}
	closeTask(t, o.Task)
}
