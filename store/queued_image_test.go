package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store/payload"
	"github.com/roost-dev/roost/task"
)

// pictures are data URLs of so many bytes each.
func pictures(sizes ...int) (out []string) {
	for i, n := range sizes {
		out = append(out, "data:image/png;base64,"+strings.Repeat(string(rune('A'+i)), n))
	}
	return out
}

// oldPayloads makes all of a task's payloads old, so that doctor judges them.
func oldPayloads(t *testing.T, dir string) (n int) {
	t.Helper()
	paths := fixture.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "blobs", "*", "*")))
	long := time.Now().Add(-2 * time.Minute)
	for _, path := range paths {
		fixture.NoError(t, os.Chtimes(path, long, long))
	}
	return len(paths)
}

// lineLengths gives the longest line of a task's journal and the size of its index.
func lineLengths(t *testing.T, dir string) (line, index int) {
	t.Helper()
	for l := range strings.Lines(read(t, dir, "journal.jsonl")) {
		line = max(line, len(l))
	}
	return line, len(read(t, dir, "journal.idx"))
}

// A screenshot that waits is kept beside the journal: neither a line of it, nor the snapshot
// that every reader takes, grows with it. It is the same after a restart, a change of the
// words, a way through the trash, and for a fork's base.
func TestALargeImageThatWaitsLiesBesideTheJournal(t *testing.T) {
	ctx := t.Context()
	images := pictures(payload.MaxInline/2, payload.MaxInline)
	s, k := besideTask(t)
	id, dir := k.Ref.ID, k.Ref.Log
	commit(t, k, task.UI, uiRow(1, "hello"))
	fixture.NoError(t, k.ChangeInput(ctx, task.InputQueued{Input: "a", Text: "look", Images: images, By: "api"}))
	fixture.NoError(t, k.Commit(ctx, task.InputQueued{Input: "b", Text: "small", Images: pictures(10), By: "api"}))
	closeTask(t, k)
	if line, index := lineLengths(t, dir); line > 8<<10 || index > 8<<10 {
		t.Errorf("a line of %d bytes, a snapshot of %d", line, index)
	}
	v := view(t, s, id)
	a, b := v.State.Queue[0], v.State.Queue[1]
	if a.ImageCount != 2 || len(a.Images) != 0 || len(b.Images) != 1 || b.ImagesBlob != "" {
		t.Errorf("got %+v, %+v, want a.ImageCount = 2 and len(a.Images) = 0 and len(b.Images) = 1 and b.ImagesBlob = \"\"",
			a, b)
	}
	if whole, err := v.State.LoadInput(a); err != nil || cmp.Diff(images, whole.Images) != "" || whole.ImagesBlob != "" || whole.ImageCount != 0 {
		t.Errorf("%d images: %v", len(whole.Images), err)
	}

	owned := own(t, s, id)
	a.Text = "look here"
	fixture.NoError(t, owned.Task.ChangeInput(ctx, a)) // as an edit gives it back
	closeTask(t, owned.Task)
	if n := oldPayloads(t, dir); n != 1 {
		t.Errorf("%d payloads: the images were stored again", n)
	}
	for range 2 {
		if r := checkWith(t, s); r.OK != 1 || len(r.Leftovers) > 0 || len(r.Damaged) > 0 {
			t.Errorf("got %+v, want r.OK = 1 and len(r.Leftovers) <= 0 and len(r.Damaged) <= 0", r)
		}
		del(t, s, id)
		fixture.Must[Ref](t)(Rooms.Restore(ctx, s, id))
	}

	owned = own(t, s, id)
	if q, ok := owned.Task.Claim("a"); !ok || q.Text != "look here" || cmp.Diff(images, q.Images) != "" {
		t.Errorf("%t, %q with %d images", ok, q.Text, len(q.Images))
	}
	closeTask(t, owned.Task)
	fork, finish, err := Rooms.Fork(ctx, s, owned.Task.Ref, "")
	fixture.NoError(t, err)
	fixture.NoError(t, finish(ctx))
	if v := view(t, s, fork); len(v.State.Queue) != 0 {
		t.Errorf("words for another task wait in the fork: %+v", v.State.Queue)
	}
	del(t, s, id)
	fixture.NoError(t, Rooms.Purge(ctx, s, id))
	if r := checkWith(t, s); r.OK != 1 || len(r.Damaged) > 0 {
		t.Errorf("the fork, when its base is gone: %+v", r)
	}
}

// A journal of before, whose lines hold the images themselves, says what it said.
func TestImagesInTheLinesOfAnOlderJournal(t *testing.T) {
	images := pictures(3 * payload.MaxInline)
	s, k := besideTask(t)
	raw := fmt.Appendf(nil, `{"type":"input.queued","input":"old","text":"look","images":[%q],"by":"api"}`, images[0])
	fixture.NoError(t, k.Commit(t.Context(), task.Unknown{Type: "input.queued", Raw: raw}))
	closeTask(t, k)
	if line, _ := lineLengths(t, k.Ref.Log); line < 3*payload.MaxInline {
		t.Fatalf("the longest line has %d bytes: it is none of before", line)
	}
	owned := own(t, s, k.Ref.ID)
	defer closeTask(t, owned.Task)
	if q, ok := owned.Task.Claim("old"); !ok || q.Text != "look" || cmp.Diff(images, q.Images) != "" {
		t.Errorf("%t, %q with %d images", ok, q.Text, len(q.Images))
	}
}

// Words are not held up by images that are damaged, and nobody takes them for words that
// came without any.
func TestWordsWhoseImagesAreDamaged(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"gone": os.Remove,
		"cut":  func(path string) error { return os.Truncate(path, 1000) },
		"flipped": func(path string) error {
			return os.WriteFile(path, []byte(`["data:image/png;base64,`+strings.Repeat("B", 2*payload.MaxInline)+`"]`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := besideTask(t)
			fixture.NoError(t, k.ChangeInput(t.Context(), task.InputQueued{Input: "a", Text: "look", Images: pictures(2 * payload.MaxInline), By: "api"}))
			closeTask(t, k)
			blob := fixture.Must[[]string](t)(filepath.Glob(filepath.Join(k.Ref.Log, "blobs", "*", "*")))[0]
			fixture.NoError(t, spoil(blob))
			owned := own(t, s, k.Ref.ID)
			q, ok := owned.Task.Claim("a")
			if !ok || q.Text != "look" || len(q.Images) != 0 || q.ImagesBlob == "" || q.ImageCount != 1 {
				t.Errorf(`got %t, %+v, want ok and q.Text = "look" and len(q.Images) = 0 and q.ImagesBlob != "" and q.ImageCount = 1`,
					ok, q)
			}
			if _, err := owned.Task.LoadInput(q); err == nil || !strings.Contains(err.Error(), "images of input a") {
				t.Errorf("got %v, want an error and strings.Contains(err.Error(), \"images of input a\")", err)
			}
			closeTask(t, owned.Task)
			if r := checkWith(t, s); len(r.Damaged) == 0 {
				t.Errorf("doctor says nothing of it: %+v", r)
			}
		})
	}
}

// What a person shows while tools run stands beside their results in one message: that,
// too, is kept beside the journal, and is read as it was.
func TestWhatAComposedMessageSpellsOutMayBeLarge(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	k := create(t, s, "one")
	result := `{"type":"tool_result","tool_use_id":"c","content":"ok"}`
	calls := `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"x","input":{}}]}`
	image := strings.Repeat("A", 2*payload.MaxInline)
	body := task.Body{Compose: []task.Piece{
		{Literal: `{"role":"user","content":[`}, {Result: "c"},
		{Literal: `,{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}],"ts":5}`},
	}}
	want := body.Compose[0].Literal + result + body.Compose[2].Literal
	fixture.NoError(t, k.Commit(ctx, add(k, task.API, calls), task.ToolFinished{Call: "c", Outcome: "ok", Result: []byte(result)}))
	fixture.NoError(t, k.Commit(ctx, task.MessageAdded{History: task.API, Message: k.State().NextMessage(), Body: body}))
	if got := string(k.State().API()[1].Raw()); got != want {
		t.Errorf("the owner reads %d bytes, of %d", len(got), len(want))
	}
	if body.Compose[2].Blob != "" {
		t.Error("the caller's own list was changed")
	}
	closeTask(t, k)
	if line, index := lineLengths(t, k.Ref.Log); line > 8<<10 || index > 8<<10 {
		t.Errorf("a line of %d bytes, a snapshot of %d", line, index)
	}
	if got := string(view(t, s, "one").State.API()[1].Raw()); got != want {
		t.Errorf("by the snapshot: %d bytes, of %d", len(got), len(want))
	}
	fixture.NoError(t, os.Remove(filepath.Join(k.Ref.Log, "journal.idx")))
	if got := string(view(t, s, "one").State.API()[1].Raw()); got != want {
		t.Errorf("by the log: %d bytes, of %d", len(got), len(want))
	}
	oldPayloads(t, k.Ref.Log)
	if r := checkWith(t, s); r.OK != 1 || len(r.Leftovers) > 0 {
		t.Errorf("got %+v, want r.OK = 1 and len(r.Leftovers) <= 0", r)
	}
}
