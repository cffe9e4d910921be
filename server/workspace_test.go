//go:build linux

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Over HTTP no task works in what holds everything of the user's, by whatever name; a task that
// does says so, and goes on in another folder.
func TestAWorkspaceIsAProject(t *testing.T) {
	g := newWork(t)
	root, home := g.store.Root(), must[string](t)(os.UserHomeDir())
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
			t.Errorf("%s: %+v", dir, p)
		}
	}
	if n := g.count(); n != before {
		t.Errorf("%d tasks were made", n-before)
	}
	// One that is there already: its run is refused by its folder, and begins in another one.
	old := must[*store.Task](t)(g.store.Create(t.Context(), task.Created{Task: "old-task", Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/", Mode: "code", Approve: "ask", Provider: "script", Model: g.model(sayDone)}}))
	if err := old.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.denied(422, "configuration", "POST", "/v1/tasks/old-task/runs", `{"message":{"text":"go on"}}`)
	var run report.Run
	g.did(202, &run, "POST", "/v1/tasks/old-task/runs", `{"message":{"text":"go on"},"workspace":"`+filepath.Join(g.dir, "ws")+`"}`)
	g.state(run.ID, "completed")
}
