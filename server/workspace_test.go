//go:build linux

package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Over HTTP no task works in what holds everything of the user's, by whatever name; a task that
// does says so, and goes on in another folder.
func TestAWorkspaceIsAProject(t *testing.T) {
	g := newWorkingBench(t)
	root, home := g.store.Root(), fixture.Must[string](t)(os.UserHomeDir())
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	before := g.count()
	for _, dir := range []string{"/", "/proc/self/root", home, "/proc/self/root" + home, root, link, filepath.Join(root, "tasks"), filepath.Dir(root)} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		p := g.denied(422, "configuration", "POST", "/v1/tasks", g.task(sayDone, "go", "workspace="+dir))
		if !strings.Contains(strings.Join(p.Suggestions, " "), "workspace") {
			t.Errorf(`%s: got %+v, want strings.Contains(strings.Join(p.Suggestions, " "), "workspace")`, dir, p)
		}
	}
	if n := g.count(); n != before {
		t.Errorf("%d tasks were made", n-before)
	}
	// One that is there already: its run is refused by its folder, and begins in another one.
	old := fixture.Must[*store.Task](t)(g.store.Create(t.Context(), task.Created{Task: "old-task", Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/", Mode: "code", Approve: "ask", Provider: "script", Model: g.model(sayDone)}}))
	if err := old.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.denied(422, "configuration", "POST", "/v1/tasks/old-task/runs", `{"message":{"text":"go on"}}`)
	var run api.Run
	g.did(202, &run, "POST", "/v1/tasks/old-task/runs", `{"message":{"text":"go on"},"workspace":"`+filepath.Join(g.dir, "ws")+`"}`)
	g.state(run.ID, "completed")
}

// A task that a shell began in a folder which is no project is refused alike by every route that
// would make it run or fork it: with the way out, and with its journal as it was.
func TestNoRouteRunsATaskOutsideAProject(t *testing.T) {
	g := newWorkingBench(t)
	shell := engine.New(g.store, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	t.Cleanup(func() {
		if err := shell.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	root, ws := g.store.Root(), filepath.Join(g.dir, "ws")
	for _, dir := range []string{"/", fixture.Must[string](t)(os.UserHomeDir()), root, filepath.Dir(root)} {
		run := fixture.Must[*engine.Run](t)(shell.Start(t.Context(), engine.Request{Choice: setup.Choice{Workspace: dir, Provider: "script", Model: g.model(askWhich)}, Text: "paint", Origin: "cli"}))
		if out := fixture.Must[engine.Outcome](t)(run.Wait(t.Context())); out.State != "waiting" {
			t.Fatalf("%s: got %+v, want out.State = \"waiting\"", dir, out)
		}
		asked := g.question(run.TaskID).ID
		journal := filepath.Join(root, "tasks", run.TaskID, "journal.jsonl")
		was, tasks := fixture.Must[[]byte](t)(os.ReadFile(journal)), g.count()
		of := "/v1/tasks/" + run.TaskID
		for _, c := range []struct{ path, body string }{
			{"/v1/questions/" + asked + "/answer", `{"choice":1}`},
			{"/api/questions/" + asked + "/answer", `{"answer":"red"}`},
			{of + "/messages", `{"text":"red"}`},
			{of + "/runs", `{"message":{"text":"red"}}`},
			{of + "/condense", `{}`},
			{of + "/condense", `{"dry_run":true}`},
			{of + "/forks", `{}`},
			{of + "/forks", `{"dry_run":true}`},
			{of + "/forks", `{"workspace":"/"}`},
			{"/chat/stream", `{"task":"red","taskId":"` + run.TaskID + `","restartTask":true}`},
		} {
			var p struct {
				Code        string
				Suggestions []string
			}
			g.did(422, &p, "POST", c.path, c.body)
			if p.Code != "configuration" || len(p.Suggestions) != 1 || p.Suggestions[0] != report.NameFolder {
				t.Errorf("%s: POST %s %s: %+v", dir, c.path, c.body, p)
			}
		}
		if string(fixture.Must[[]byte](t)(os.ReadFile(journal))) != string(was) || g.count() != tasks {
			t.Errorf("%s: a refusal changed something", dir)
		}
		g.did(200, nil, "GET", of+"/context", "") // reading is no run
		var fork api.ForkResult
		g.did(201, &fork, "POST", of+"/forks", `{"workspace":"`+ws+`"}`)
		g.did(202, nil, "POST", of+"/runs", `{"message":{"text":"red"},"workspace":"`+ws+`"}`)
		g.state(run.ID, "completed")
	}
}
