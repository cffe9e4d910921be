//go:build unix

package server

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
)

// restart asks the older call to go on with a task.
func (g *bench) restart(task, words string, headers ...string) *stream {
	g.Helper()
	body := string(fixture.Must[[]byte](g)(json.Marshal(api.OlderRun{Text: words, Task: task, Restart: true})))
	resp := g.send("POST", "/chat/stream", body, headers...)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != streamMedia {
		g.Fatal(resp.Status, problemIn(g, resp))
	}
	return &stream{g, resp, bufio.NewReader(resp.Body)}
}

// lines reads the older call's stream to its end.
func (s *stream) lines() (out []api.OlderEvent) {
	s.t.Helper()
	for {
		f, ok := s.next()
		if !ok {
			return out
		}
		var e api.OlderEvent
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, e)
	}
}

// The older call goes on with a task that another process works on: its words go there, and
// the stream is that of the run there.
func TestOlderCallReachesAnotherProcess(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t)
	x := g.terminal()
	run := x.runs(askWhich)
	q := g.question(run.TaskID)
	lines := g.restart(run.TaskID, "green", keyHeader+": green").lines()
	if kinds := strings.Join(typesOf(lines), " "); !strings.HasPrefix(kinds, "start ") || !strings.HasSuffix(kinds, "completion stream_end") {
		t.Errorf(`got %s, want strings.HasPrefix(kinds, "start ") and strings.HasSuffix(kinds, "completion stream_end")`,
			kinds)
	}
	if first := lines[0]; first.Task != run.TaskID || first.Job != run.ID {
		t.Errorf("got %+v, want first.Task = run.TaskID and first.Job = run.ID", first)
	}
	x.ended(run, "completed")
	id := g.id
	g.id = run.TaskID
	var said []string
	for _, f := range g.events() {
		if f.Type == "question.closed" {
			said = append(said, f.Data)
		}
	}
	g.id = id
	if len(said) != 1 || !strings.Contains(said[0], `"green"`) {
		t.Errorf("question %s: %v", q.ID, said)
	}
	// Again under its key it is told again, and nothing is said twice.
	if again := g.restart(run.TaskID, "green", keyHeader+": green").lines(); len(again) == 0 || again[0].Job != run.ID {
		t.Errorf("got %+v, want len(again) != 0 and again[0].Job = run.ID", again)
	}
}

// What this server's settings forbid is not passed on, and who cannot be reached is named.
func TestOlderCallIsNotPassedOnAgainstTheSettings(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t, func(o *testOptions) { o.Restart.Off = true })
	x := g.terminal()
	run := x.runs(askWhich)
	g.question(run.TaskID)
	body := `{"task":"go on","taskId":"` + run.TaskID + `","restartTask":true}`
	var p api.OlderFailure
	if g.did(403, &p, "POST", "/chat/stream", body); p.Code != "restart_disabled" {
		t.Errorf("got %+v, want p.Code = \"restart_disabled\"", p)
	}
	o := g.opt
	o.Restart.Off = false
	g.srv.service = service.New(o.Store, o.Engine, service.Options{Restart: o.Restart})
	if err := x.socket.Close(); err != nil {
		t.Fatal(err)
	}
	if g.did(409, &p, "POST", "/chat/stream", body); p.Code != "task_locked" && p.Code != "task_busy" || p.Task == nil || *p.Task != run.TaskID {
		t.Errorf(`got %+v, want (p.Code = "task_locked" or p.Code = "task_busy") and p.Task != nil and *p.Task = run.TaskID`,
			p)
	}
	run.Cancel()
	x.ended(run, "cancelled")
}

// Words for a run that works here wait for it, and the stream follows it.
func TestOlderCallJoinsARunThatWorks(t *testing.T) {
	t.Parallel()
	g := newWorkingBench(t)
	run := g.started(hangs)
	g.state(run.ID, "running")
	g.id = run.Task
	s := g.follow(g.path("/events?after=0"))
	told := g.restart(run.Task, "and water them")
	for {
		if f := s.take(1)[0]; f.Type == "input.queued" {
			if !strings.Contains(f.Data, "and water them") {
				t.Error(f.Data)
			}
			break
		}
	}
	g.did(200, nil, "POST", g.path("/cancel"), "")
	lines := told.lines()
	if len(lines) < 2 || lines[0].Job != run.ID || lines[len(lines)-1].Type != "stream_end" {
		t.Errorf("got %+v, want len(lines) >= 2 and lines[0].Job = run.ID and lines[len(lines)-1].Type = \"stream_end\"",
			lines)
	}
}
