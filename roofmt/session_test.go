package roofmt_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

const sid = "1776200000000_ab3xz"

// transcript is a session's transcript with n messages, spelled as Cline does.
func transcript(n int) string {
	var list []string
	for i := range n {
		role, metrics := "user", ""
		if i%2 == 1 {
			role = "assistant"
			metrics = `,
      "metrics": {"inputTokens": 10, "outputTokens": 2, "cacheReadTokens": 1, "cacheWriteTokens": 0, "cost": 0.25}`
		}
		list = append(list, fmt.Sprintf(`    {
      "role": %q,
      "content": [{"type": "text", "text": "message %d, with \"messages\": [ in it"}],
      "id": "n%d",
      "ts": %d%s
    }`, role, i, i, 1776200000000+i, metrics))
	}
	return "{\n  \"version\": 1,\n  \"origin\": {\"messages\": [1]},\n  \"messages\": [\n" + strings.Join(list, ",\n") + "\n  ],\n  \"system_prompt\": \"You are [helpful]\"\n}\n"
}

const manifest = `{"version":1,"session_id":"` + sid + `","source":"cli","started_at":"2026-04-14T20:53:20.000Z","status":"completed","provider":"p","model":"m","cwd":"/w","prompt":"mow the lawn\nall of it","metadata":{"title":"mow the lawn","totalCost":9}}` + "\n"

// session makes a session's folder. An empty text makes no file.
func session(t *testing.T, transcript, manifest string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "sessions", sid)
	mkdirs(t, dir)
	for name, text := range map[string]string{sid + ".messages.json": transcript, sid + ".json": manifest} {
		if text != "" {
			write(t, dir, map[string]string{name: text})
		}
	}
	return dir
}

func TestASessionOfCline(t *testing.T) {
	dir := session(t, transcript(4), manifest)
	write(t, dir, map[string]string{"helper.messages.json": transcript(2)})
	f := read(t, dir)
	if f.API.Len() != 4 || f.API.Source != roofmt.TranscriptName(sid) || f.UI.Len() != 0 || f.Empty() || damaged(f) {
		t.Fatalf("got %+v %+v, want f.API.Len() = 4 and f.API.Source = roofmt.TranscriptName(sid) and f.UI.Len() = 0 and not f.Empty() and no losses",
			f.API, f.Losses)
	}
	for i := range f.API.Len() {
		raw, err := f.API.Raw(i)
		if err != nil || !strings.Contains(string(raw), fmt.Sprintf("message %d,", i)) {
			t.Errorf("message %d: %s (%v)", i, raw, err)
		}
	}
	if f.Tool != roofmt.Cline || len(f.Others) != 1 || f.Others[0].Name != "helper.messages.json" {
		t.Errorf("got %q %+v, want f.Tool = roofmt.Cline and len(f.Others) = 1 and f.Others[0].Name = \"helper.messages.json\"",
			f.Tool, f.Others)
	}
	want := `{"id":"` + sid + `","ts":1776200000003,"task":"mow the lawn\nall of it","tokensIn":20,"tokensOut":4,"cacheReads":2,"cacheWrites":0,"totalCost":0.5,"workspace":"/w","status":"completed","provider":"p","modelId":"m","source":"cli"}`
	if string(f.Row) != want {
		t.Errorf("%s\nwant %s", f.Row, want)
	}
}

func TestFindSessions(t *testing.T) {
	dir := session(t, transcript(1), manifest)
	sessions := filepath.Dir(dir)
	write(t, sessions, map[string]string{"sessions.index.json": "{}"})
	for path, want := range map[string]roofmt.Shape{dir: roofmt.TaskFolder, sessions: roofmt.TasksDir} {
		if l, err := roofmt.Find(context.Background(), path); err != nil || l.Shape != want || len(l.Tasks) != 1 || l.Tasks[0].ID != sid {
			t.Errorf("%s: got %+v (%v), want no error and l.Shape = %v and len(l.Tasks) = 1 and l.Tasks[0].ID = sid",
				path, l, err, want)
		}
	}
	if got := roofmt.SessionsDir(filepath.Dir(sessions)); got != sessions {
		t.Errorf("got %q, want got = sessions", got)
	}
	if got := roofmt.SessionsDir(dir); got != "" {
		t.Errorf("no sessions: %q", got)
	}
	home := t.TempDir()
	mkdirs(t, filepath.Join(home, ".cline", "data", "sessions"))
	for _, s := range roofmt.DefaultStorages(roofmt.Env{GOOS: "linux", Home: home}) {
		if s.Tool != roofmt.Cline {
			t.Errorf("got %+v, want s.Tool = roofmt.Cline", s)
		}
	}
}

// A transcript is written in place, so a kill cuts it anywhere: all whole messages
// come back, and that something is missing is said.
func TestATranscriptCutAtEveryByte(t *testing.T) {
	text := transcript(3)
	var ends []int
	for i := range 3 {
		ends = append(ends, strings.Index(text, fmt.Sprintf(`"n%d"`, i)))
		ends[i] += strings.Index(text[ends[i]:], "\n    }") + len("\n    }")
	}
	dir := session(t, text, "")
	for cut := 1; cut <= len(text); cut++ {
		write(t, dir, map[string]string{roofmt.TranscriptName(sid): text[:cut]})
		f, err := roofmt.Read(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, end := range ends {
			if cut >= end {
				want++
			}
		}
		whole := esjson.Valid([]byte(text[:cut]))
		if f.API.Len() != want || damaged(f) == whole || f.Empty() {
			t.Errorf("cut at %d of %d: %d messages, want %d; %+v", cut, len(text), f.API.Len(), want, f.Losses)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSessionsThatAreNotWhole(t *testing.T) {
	for name, c := range map[string]struct {
		transcript, manifest string
		messages             int
		damaged, empty       bool
		row                  string // part of it
	}{
		"no manifest":         {transcript: transcript(2), messages: 2, row: `"ts":1776200000001`},
		"broken manifest":     {transcript: transcript(2), manifest: "{", messages: 2, damaged: true, row: `"totalCost":0.25`},
		"a manifest alone":    {manifest: manifest, empty: true},
		"no message yet":      {transcript: `{"version":1,"messages":[]}`, manifest: manifest, empty: true, row: `"ts":1776200000000`},
		"only NULs":           {transcript: strings.Repeat("\x00", 600), manifest: manifest, damaged: true, empty: true, row: `"task":"mow the lawn`},
		"not an object":       {transcript: `[1,2]`, damaged: true},
		"messages no list":    {transcript: `{"messages":{"a":1}}`, damaged: true},
		"something behind it": {transcript: transcript(2) + "}", messages: 2, damaged: true},
		"a hole":              {transcript: strings.Replace(transcript(5), `"id": "n1"`, "\x00\x00", 1), messages: 4, damaged: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, session(t, c.transcript, c.manifest))
			if f.API.Len() != c.messages || damaged(f) != c.damaged || f.Empty() != c.empty {
				t.Errorf("%d messages, damaged %v, empty %v: %+v", f.API.Len(), damaged(f), f.Empty(), f.Losses)
			}
			if !strings.Contains(string(f.Row), c.row) {
				t.Errorf("row %s", f.Row)
			}
		})
	}
}

// A task of an older Cline that was taken over keeps its own files; a transcript
// beside them does not hide them.
func TestOwnListsGoBeforeATranscript(t *testing.T) {
	dir := session(t, transcript(1), manifest)
	write(t, dir, map[string]string{roofmt.APIName: `[{"role":"user","content":"old"},{"role":"user","content":"old"}]`})
	if f := read(t, dir); f.API.Len() != 2 || f.API.Source != roofmt.APIName {
		t.Errorf("got %+v, want f.API.Len() = 2 and f.API.Source = roofmt.APIName", f.API)
	}
}

func FuzzTranscript(f *testing.F) {
	for _, seed := range []string{transcript(2), `{"messages":[{"role":"user"}]}`, `{"messages":[`, `{"a":{"messages":[1]},"messages":[2]}`, "\xEF\xBB\xBF{\"messages\":[]}", `{"messages"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		folder := read(t, session(t, text+" ", ""))
		for raw, err := range folder.API.All() {
			if err != nil || !esjson.Valid(raw) {
				t.Fatalf("%q: no message: %q (%v)", text, raw, err)
			}
		}
		if !damaged(folder) && strings.TrimSpace(text) != "" && !esjson.Valid([]byte(text)) {
			t.Fatalf("%q counts as whole", text)
		}
	})
}
