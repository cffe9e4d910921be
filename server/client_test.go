package server

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// Our own client gets every event of a real server once, through a network that cuts
// connections anywhere; and in this process, without a network, the same ones.
func TestClientFollows(t *testing.T) {
	g := newBench(t)
	want := g.events()
	p := &proxy{Listener: fixture.Must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")), to: strings.TrimPrefix(g.url, "http://"), rand: rand.New(rand.NewPCG(3, 1))}
	var proxied sync.WaitGroup
	proxied.Go(p.run)
	defer proxied.Wait()
	defer p.wait.Wait()
	defer p.Close()
	far := fixture.Must[*client.Client](t)(client.New("http://"+p.Addr().String(), client.Options{Token: g.token}))
	defer far.Close()
	for name, c := range map[string]*client.Client{"far": far, "here": client.Local(g.srv.Handler(), g.token)} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		var got []frame
		for e, err := range c.Events(ctx, g.id, "0") {
			if err != nil {
				t.Error(name, err)
				break
			}
			if e.ID != "" {
				got = append(got, frame{e.ID, e.Type, string(e.Data)})
			}
			if e.ID == want[len(want)-1].ID {
				break
			}
		}
		cancel()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", name, diff)
		}
	}
	if mark, err := client.Local(g.srv.Handler(), g.token).Mark(t.Context(), g.id); err != nil || mark != want[len(want)-1].ID {
		t.Errorf("the newest event is %s, %v; want %s", mark, err, want[len(want)-1].ID)
	}
}

// Messages come as lines, window by window: joined, they are what one window has.
func TestLines(t *testing.T) {
	g := newBench(t)
	lines := func(query string) (l api.Lines) {
		if err := json.Unmarshal(g.get(g.path("/lines?%s", query)), &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	whole := lines("after=0")
	if whole.Total != len(whole.Items) || whole.Before != nil || whole.After != nil || !strings.Contains(whole.Items[0].Lines[1].Text, "paint the fence") {
		t.Fatalf("got %+v, want whole.Total = len(whole.Items) and whole.Before = nil and whole.After = nil and strings.Contains(whole.Items[0].Lines[1].Text, \"paint the fence\")",
			whole)
	}
	var parts []api.ShownMessage
	for at := "after=0"; ; {
		part := lines(at + "&limit=2")
		parts = append(parts, part.Items...)
		if part.After == nil {
			break
		}
		at = "after=" + itoa(*part.After)
	}
	if diff := cmp.Diff(whole.Items, parts); diff != "" {
		t.Error(diff)
	}
	if last := lines("limit=1"); len(last.Items) != 1 || last.Items[0].Number != whole.Total || *last.Before != whole.Total {
		t.Errorf("got %+v, want len(last.Items) = 1 and last.Items[0].Number = whole.Total and *last.Before = whole.Total",
			last)
	}
	g.refused(422, "validation_failed", "GET", g.path("/lines?view=nonsense"))
	g.refused(404, "task_not_found", "GET", "/v1/tasks/nothing/lines")
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// An export comes as a file, and says behind it what was masked.
func TestExport(t *testing.T) {
	g := newBench(t)
	for format, has := range map[string]string{"md": "paint the fence", "html": "<html", "json": `"paint the fence"`, "archive": "PK", "roo": "ui_messages.json"} {
		resp := g.ask("GET", g.path("/export?format=%s", format))
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || !bytes.Contains(body, []byte(has)) {
			t.Errorf("%s: %s, %v, %d bytes", format, resp.Status, err, len(body))
		}
		var told api.Exported
		text, _ := url.QueryUnescape(resp.Trailer.Get("Roost-Export"))
		if err := json.Unmarshal([]byte(text), &told); err != nil || told.Masked != 0 || told.Damaged == nil {
			t.Errorf("%s: got %q, %v, want no error and told.Masked = 0 and told.Damaged != nil", format, text, err)
		}
		_, disposition, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition"))
		ending := map[string]string{"md": ".md", "html": ".html", "json": ".json", "archive": ".zip", "roo": ".tar"}[format]
		if name := disposition["filename"]; err != nil || name != g.id+ending {
			t.Errorf("%s is saved as %q, %v", format, name, err)
		}
		if format == "archive" {
			if _, err := zip.NewReader(bytes.NewReader(body), int64(len(body))); err != nil {
				t.Error(err)
			}
		}
	}
	list := api.Page[api.Summary]{}
	if err := json.Unmarshal(g.get("/v1/tasks"), &list); err != nil {
		t.Fatal(err)
	}
	body := g.get(g.path("/export?format=archive&also=*"))
	held, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(slices.DeleteFunc(held.File, func(f *zip.File) bool { return !strings.HasSuffix(f.Name, roofmt.UIName) })); n != len(list.Items) {
		t.Errorf("got %d tasks in the archive of all, want %d", n, len(list.Items))
	}
	g.refused(404, "task_not_found", "GET", "/v1/tasks/nothing/export")
	g.refused(422, "validation_failed", "GET", g.path("/export?format=doc"))
	g.refused(422, "validation_failed", "GET", g.path("/export?also=x"))
	p := g.refused(404, "task_not_found", "GET", g.path("/export?format=archive&also=nothing"))
	if p.Task != "" || !strings.Contains(p.Detail, "nothing") || strings.Contains(p.Detail, g.id) {
		t.Errorf("got task %q, %q, want the name of the missing task alone", p.Task, p.Detail)
	}
}
