package server

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store/drafts"
)

// dot is a picture of one point.
var dot, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

var dotURL = "data:image/png;base64," + base64.StdEncoding.EncodeToString(dot)

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A draft of a task, and that of a new one, is kept until its message was sent; of two devices the second learns of it.
func TestDraft(t *testing.T) {
	g := newWorkingBench(t)
	for _, at := range []string{g.path("/draft"), "/v1/draft"} {
		var none, first, same, got api.Draft
		g.did(200, &none, "GET", at, "")
		if none.Revision != "" || none.Text != "" || none.Images == nil {
			t.Errorf("%s: got %+v, want no draft", at, none)
		}
		g.did(200, &first, "PUT", at, `{"text":"one","key":"k1","base":""}`)
		g.did(200, &same, "PUT", at, `{"text":"one","key":"k1","base":""}`) // an answer was lost
		if first.Revision == "" || first.Images == nil || same.Revision != first.Revision {
			t.Errorf("%s: got the revisions %q and %q, want one", at, first.Revision, same.Revision)
		}
		g.denied(409, "draft_moved", "PUT", at, `{"text":"two","base":""}`)
		g.did(200, &got, "GET", at, "")
		if got.Text != "one" || got.Key != "k1" || got.Changed == nil {
			t.Errorf("%s: got %+v, want the first text", at, got)
		}
		g.denied(409, "draft_moved", "DELETE", at+"?revision=other", "")
		g.did(204, nil, "DELETE", at+"?revision="+first.Revision, "")
		g.did(204, nil, "DELETE", at, "")
		g.did(200, &got, "GET", at, "")
		if got.Revision != "" {
			t.Errorf("%s: got %+v, want no draft", at, got)
		}
		g.denied(422, "validation_failed", "PUT", at, text(t, api.NewDraft{Text: strings.Repeat("x", drafts.MaxText+1)}))
		g.denied(422, "validation_failed", "PUT", at, text(t, api.NewDraft{Images: []string{"data:image/png;base64,aGVsbG8="}}))
	}
}

// An image of a draft is kept beside it, is sent by its name, and goes with the draft. The folder of the task stays as
// it is.
func TestDraftWithAnImage(t *testing.T) {
	g := newWorkingBench(t)
	before := names(t, filepath.Join(g.store.TasksDir(), g.id))
	at := g.path("/draft")
	var d api.Draft
	g.did(200, &d, "PUT", at, text(t, api.NewDraft{Text: "look", Images: []string{dotURL}, Key: "k"}))
	if len(d.Images) != 1 || d.Images[0].Media != "image/png" || d.Images[0].Bytes != len(dot) {
		t.Fatalf("got %+v, want one image", d)
	}
	name := d.Images[0].Name
	if got := string(g.get(at + "/images/" + name)); got != string(dot) {
		t.Errorf("got an image of %d bytes, want %d", len(got), len(dot))
	}
	g.did(200, &d, "PUT", at, text(t, api.NewDraft{Text: "look here", Images: []string{name}, Key: "k2", Base: d.Revision}))
	if after := names(t, filepath.Join(g.store.TasksDir(), g.id)); after != before {
		t.Errorf("the folder of the task holds\n%s\nwant\n%s", after, before)
	}
	g.denied(422, "validation_failed", "POST", g.path("/messages"),
		text(t, api.Message{Text: "x", Images: []string{"sha256:" + strings.Repeat("0", 64)}}))
	body := text(t, api.Message{Text: d.Text, Images: []string{name}, Draft: d.Revision})
	var sent api.Sent
	g.did(202, &sent, "POST", g.path("/messages"), body)
	g.state(sent.Run, "completed")
	if got := string(g.get(g.path("/messages"))); !strings.Contains(got, dotURL) {
		t.Errorf("the messages lack the image: %s", got)
	}
	g.did(200, &d, "GET", at, "")
	if d.Revision != "" {
		t.Errorf("got %+v, want no draft", d)
	}
	if left := names(t, filepath.Join(g.store.Root(), "drafts")); left != "lock" {
		t.Errorf("the folder of drafts holds %s, want the lock alone", left)
	}
}

// The draft of a task stays with it in the trash, and is removed with it for good.
func TestDraftGoesWithThePurge(t *testing.T) {
	g := newWorkingBench(t)
	at := g.path("/draft")
	g.did(200, nil, "PUT", at, `{"text":"secret words","base":""}`)
	g.did(200, nil, "DELETE", g.path(""), "")
	g.did(200, nil, "POST", "/v1/trash/"+g.id+"/restore", "")
	var d api.Draft
	g.did(200, &d, "GET", at, "")
	if d.Text != "secret words" {
		t.Errorf("got %+v, want the draft", d)
	}
	g.did(200, nil, "DELETE", g.path(""), "")
	g.did(200, nil, "DELETE", "/v1/trash/"+g.id, "")
	if left := names(t, filepath.Join(g.store.Root(), "drafts")); left != "lock" {
		t.Errorf("the folder of drafts holds %s, want the lock alone", left)
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}
