package intake_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/store/intake"
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
			list = append(list, fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"a%d"},{"type":"tool_use","id":"t%d","name":"read_file","input":{}}],"ts":%d}`, i, i, storetest.TS0+i))
		case i == 0:
			list = append(list, storetest.APIRow(i, "user", "q0"))
		case words:
			list = append(list, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"r%d"},{"type":"text","text":"q%d"}],"ts":%d}`, i-1, i, i, storetest.TS0+i))
		default:
			list = append(list, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"r%d"}],"ts":%d}`, i-1, i, storetest.TS0+i))
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

func TestTagsSendWhatClineSends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 40).Draw(t, "messages")
		history := bytesOf(turns(n, rapid.Bool().Draw(t, "words")))
		if rapid.Bool().Draw(t, "text content") {
			history[n-1] = []byte(`{"role":"user","content":"plain","ts":1}`)
		}
		last := rapid.IntRange(2, n-2).Draw(t, "last")
		var got [][]byte
		seen := 0
		for _, p := range intake.TagDeleted(history, 2, last) {
			if p.From >= 0 {
				if p.From != seen {
					t.Fatalf("message %d comes after %d others", p.From, seen)
				}
				seen++
				if role, _ := esjson.GetString(p.Raw, "role"); !strings.HasPrefix(string(history[p.From]), `{"role":"`+role) {
					t.Fatalf("message %d is another one: %s", p.From, p.Raw)
				}
			}
			got = append(got, p.Raw)
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
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, "do it"), storetest.UIRow(2, "done so far")))
	storetest.Write(t, dir, roofmt.APIName, storetest.Array(turns(n, true)...))
	writeRange(t, storage, id, last)
	return storage, dir
}

func writeRange(t testing.TB, storage, id string, last int) {
	storetest.Write(t, filepath.Join(storage, "state"), "taskHistory.json", fmt.Sprintf(`[{"id":%q,"ts":%d,"task":"dig","cwdOnTaskInitialization":"/garden","isFavorited":true,"conversationHistoryDeletedRange":[2,%d]}]`, id, storetest.TS0, last))
}

func sent(t testing.TB, s *store.Store, ref store.Ref) []string {
	t.Helper()
	v := storetest.Must[*store.View](t)(s.Read(context.Background(), ref))
	defer v.Close()
	history, _, err := v.Sent()
	storetest.Check(t, err)
	return said(history)
}

func TestAForkSendsWhatClineSent(t *testing.T) {
	const id = "1730047571772"
	storage, dir := deletedStorage(t, id, 10, 5)
	root := t.TempDir()
	s := storetest.Open(t, root, storage)
	before := storetest.Tree(t, storage)
	ref := foreignRef(t, s, id)
	want := sentByCline(bytesOf(turns(10, true)), 5)
	if d := cmp.Diff(want, sent(t, s, ref)); d != "" {
		t.Errorf("before it goes on: %s", d)
	}
	if v := storetest.View(t, s, id); len(v.State.API()) != 10 {
		t.Errorf("looking hides %d messages", 10-len(v.State.API()))
	}
	o := storetest.Must[*store.Owned](t)(s.Own(context.Background(), ref))
	if d := cmp.Diff(want, said(storetest.Must[[][]byte](t)(o.Task.State().RawAPI()))); d != "" {
		t.Errorf("the fork: %s", d)
	}
	if n := len(o.Task.State().API()); n != 11 || !o.Task.State().Pinned {
		t.Errorf("%d messages, pinned %v", n, o.Task.State().Pinned)
	}
	storetest.Commit(t, o.Task, task.API, storetest.APIRow(90, "user", "on"))
	want = append(want, `user [{"type":"text","text":"on"}]`)
	fork := o.Task.Ref
	storetest.Close(t, o.Task)
	for range 2 {
		again := storetest.Must[*store.Owned](t)(s.Own(context.Background(), ref))
		if d := cmp.Diff(want, said(storetest.Must[[][]byte](t)(again.Task.State().RawAPI()))); d != "" || !again.Again || len(again.Task.Intakes()) != 0 {
			t.Errorf("again: %+v %s", again.Task.Intakes(), d)
		}
		storetest.Close(t, again.Task)
	}
	// The files that Roo opens say the same, and so does reading them without the journal.
	elements := []string{}
	for raw := range esjson.Array([]byte(storetest.Read(t, fork.Dir, roofmt.APIName))) {
		elements = append(elements, string(raw))
	}
	if d := cmp.Diff(want, said(bytesOf(elements))); d != "" {
		t.Errorf("Roo's file: %s", d)
	}
	if d := cmp.Diff(before, storetest.Tree(t, storage)); d != "" {
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
			s := storetest.Open(t, t.TempDir(), storage)
			ref := foreignRef(t, s, id)
			storetest.Close(t, storetest.Must[*store.Owned](t)(s.Own(context.Background(), ref)).Task)
			storetest.Write(t, dir, roofmt.APIName, storetest.Array(turns(c.n, true)...))
			writeRange(t, storage, id, c.last)
			for range 2 {
				o := storetest.Must[*store.Owned](t)(s.Own(context.Background(), ref))
				for _, in := range o.Task.Intakes() {
					if in.Refused != "" {
						t.Errorf("refused: %s", in.Refused)
					}
				}
				if d := cmp.Diff(sentByCline(bytesOf(turns(c.n, true)), c.last), said(storetest.Must[[][]byte](t)(o.Task.State().RawAPI()))); d != "" {
					t.Error(d)
				}
				storetest.Close(t, o.Task)
			}
		})
	}
}

// An import takes the range along, although the list that holds it stays behind.
func TestAnImportSendsWhatClineSent(t *testing.T) {
	const id = "1730047571772"
	_, dir := deletedStorage(t, id, 10, 5)
	s := storetest.Open(t, t.TempDir())
	list := storetest.Must[[]importer.Original](t)(importer.FindPath(t.Context(), s, dir))
	if r := storetest.Must[api.Import](t)(importer.Run(t.Context(), s, list, importer.Options{})); r.Imported != 1 || !r.Items[0].ByteEqual {
		t.Fatalf("got %+v, want one byte equal task", r)
	}
	want := sentByCline(bytesOf(turns(10, true)), 5)
	ref := storetest.Must[store.Ref](t)(s.Find(context.Background(), id))
	if d := cmp.Diff(want, sent(t, s, ref)); d != "" {
		t.Errorf("before it goes on: %s", d)
	}
	o := storetest.Own(t, s, id)
	if d := cmp.Diff(want, said(storetest.Must[[][]byte](t)(o.Task.State().RawAPI()))); d != "" {
		t.Errorf("the import: %s", d)
	}
	storetest.Close(t, o.Task)
	if all := storetest.Must[[]store.Ref](t)(s.Refs(context.Background())); len(all) != 1 || all[0].ID != id {
		t.Errorf("got %v, want the import alone", all)
	}
}

// What stands for a session goes with the fork, and what it stands for stays there.
func TestAForkOfACondensedSession(t *testing.T) {
	data, dir := storetest.ClineData(t)
	storetest.Write(t, dir, storetest.SessionID+".compaction.json", `{"version":1,"source_message_count":2,"source_last_message_key":"id:b","messages":[{"role":"user","content":"in short","id":"s1"},{"role":"assistant","content":"so it is","id":"s2"}]}`)
	s := storetest.Open(t, t.TempDir(), data)
	ref := foreignRef(t, s, storetest.SessionID)
	want := []string{`user "in short"`, `assistant "so it is"`, `user [{"type":"tool_result","tool_use_id":"t1","name":"read_files","content":"x"}]`}
	if d := cmp.Diff(want, sent(t, s, ref)); d != "" {
		t.Errorf("before it goes on: %s", d)
	}
	o := storetest.Own(t, s, storetest.SessionID)
	if d := cmp.Diff(want, said(storetest.Must[[][]byte](t)(o.Task.State().RawAPI()))); d != "" || len(o.Task.State().API()) != 5 {
		t.Errorf("%d messages: %s", len(o.Task.State().API()), d)
	}
	storetest.Close(t, o.Task)
	// The session goes on in Cline: the fork has it, and is still condensed.
	grown := strings.Replace(storetest.Read(t, dir, roofmt.TranscriptName(storetest.SessionID)), "\n  ]", ",\n{\"role\":\"assistant\",\"content\":\"more\",\"id\":\"d\",\"ts\":1776200000009}\n  ]", 1)
	storetest.Write(t, dir, roofmt.TranscriptName(storetest.SessionID), grown)
	o = storetest.Own(t, s, storetest.SessionID)
	if d := cmp.Diff(append(want, `assistant "more"`), said(storetest.Must[[][]byte](t)(o.Task.State().RawAPI()))); d != "" || len(o.Task.Intakes()) != 1 || o.Task.Intakes()[0].Refused != "" {
		t.Errorf(`got %+v: %s, want d = "" and len(o.Task.Intakes()) = 1 and o.Task.Intakes()[0].Refused = ""`, o.Task.Intakes(), d)
	}
	storetest.Close(t, o.Task)
}

// foreignRef is the task of that id in another tool's storage.
func foreignRef(t testing.TB, s *store.Store, id string) store.Ref {
	t.Helper()
	all := storetest.Must[[]store.Ref](t)(s.Refs(context.Background()))
	i := slices.IndexFunc(all, func(r store.Ref) bool { return r.ID == id && r.Foreign() })
	if i < 0 {
		t.Fatalf("got %v, want %s in a storage", all, id)
	}
	return all[i]
}
