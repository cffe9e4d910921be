package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/task"
)

// talk makes a closed task of n messages in each history, a hundred commits' worth in one.
func talk(tb testing.TB, s *Store, id string, n int) *Task {
	tb.Helper()
	ctx := context.Background()
	k, err := s.Create(ctx, task.Created{Task: id, Number: 1, CreatedAt: 1})
	if err != nil {
		tb.Fatal(err)
	}
	text := strings.Repeat("\tif err := s.handle(ctx, \"value\"); err != nil { return err }\n", 4)[:200]
	for i := 0; i < n; {
		var all []task.Event
		next := k.State().NextMessage()
		for ; i < n && len(all) < 200; i++ {
			role := "user"
			if i%2 == 1 {
				role = "assistant"
			}
			quoted := esjson.Quote(nil, text)
			all = append(all,
				task.MessageAdded{History: task.UI, Message: next + uint64(len(all)), Body: task.Body{Raw: fmt.Appendf(nil, `{"ts":%d,"type":"say","say":"text","text":%s}`, i+1, quoted)}},
				task.MessageAdded{History: task.API, Message: next + uint64(len(all)) + 1, Body: task.Body{Raw: fmt.Appendf(nil, `{"role":%q,"content":[{"type":"text","text":%s}],"ts":%d}`, role, quoted, i+1)}})
		}
		if err := k.Commit(ctx, all...); err != nil {
			tb.Fatal(err)
		}
	}
	if err := k.Close(ctx); err != nil {
		tb.Fatal(err)
	}
	return k
}

func BenchmarkSent(b *testing.B) {
	s, err := Open(Options{Root: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	k := talk(b, s, "long", 25_000)
	v, err := s.Read(context.Background(), k.Ref)
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	b.ReportAllocs()
	for b.Loop() {
		sent, _, err := v.Sent()
		if err != nil || len(sent) != 25_000 {
			b.Fatal(len(sent), err)
		}
	}
}

// What is sent is the same out of a log, read where its messages are known to stand, as out
// of its owner's memory: messages that are spelled out, changed, put together and kept apart,
// of a task and of a fork that begins with its log.
func TestSentIsWhatTheOwnerHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	s := open(t, t.TempDir())
	ctx := context.Background()
	k := create(t, s, "sent")
	message := func(i int, text string) task.Event {
		return add(k, task.API, fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q}],"ts":%d}`, []string{"user", "assistant"}[i%2], text, i+1))
	}
	for i := range 40 {
		fixture.NoError(t, k.Commit(ctx, message(i, fmt.Sprint("message ", i))))
	}
	id := k.State().API()[20].ID
	row := k.State().NextMessage()
	fixture.NoError(t, k.Commit(ctx, task.MessageAdded{History: task.UI, Message: row, Body: task.Body{Raw: []byte(uiRow(1, ""))}},
		task.MessageTextSaved{Message: row, Text: "streamed \u00e4"}))
	fixture.NoError(t, k.Commit(ctx,
		task.MessageChanged{Message: id, Body: task.Body{Raw: []byte(`{"role":"user","content":[{"type":"text","text":"changed"}]}`)}},
		task.MessageChanged{Message: id + 1, Body: task.Body{Compose: []task.Piece{{Literal: `{"role":"assistant","content":`}, {TextOf: row}, {Literal: `}`}}}}))
	fixture.NoError(t, k.Commit(ctx, message(0, strings.Repeat("large ", 60_000))))
	same := func(id string, want [][]byte) {
		t.Helper()
		v := view(t, s, id)
		got, at, err := v.Sent()
		if d := cmp.Diff(want, got); d != "" || err != nil || len(at) != len(want) {
			t.Errorf("%s: %v, %d places, %s", id, err, len(at), d)
		}
	}
	want := fixture.Must[[][]byte](t)(k.State().RawAPI())
	fixture.NoError(t, k.Barrier(ctx))
	same("sent", want) // as it is, beside its owner
	closeTask(t, k)
	same("sent", want) // from the snapshot
	forked, finish, err := Rooms.Fork(ctx, s, k.Ref, "")
	fixture.NoError(t, err)
	fixture.NoError(t, finish(ctx))
	same(forked, want)
}
