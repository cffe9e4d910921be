//go:build unix

package actions_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store"

	"github.com/roost-dev/roost/task"
)

// Killed anywhere on the way into the trash, out of it, or out of the world, a
// task is in one place, whole; and doing it again ends as if nothing had been.
func TestKilledWhileMoving(t *testing.T) {
	if testing.Short() {
		t.Skip("kills many processes")
	}
	for _, tt := range []struct {
		point, do   string
		trash       bool // it lies there before
		afterwards  string
		then, place string
	}{
		{"trash.marked", "delete=moving", false, "tasks", "delete=moving", "trash"},
		{"trash.moved", "delete=moving", false, "trash", "restore=moving", "tasks"},
		{"project.temp", "delete=moving", false, "trash", "restore=moving", "tasks"},    // the index
		{"project.renamed", "delete=moving", false, "trash", "restore=moving", "tasks"}, //
		{"restore.chosen", "restore=moving", true, "trash", "restore=moving", "tasks"},
		{"restore.moved", "restore=moving", true, "tasks", "delete=moving", "trash"},
		{"project.temp", "restore=moving", true, "tasks", "delete=moving", "trash"},
		{"restore.moved", "undo=moving", true, "tasks", "delete=moving undo=moving redo=moving", "trash"},
		{"trash.marked", "undo=moving redo=moving", true, "tasks", "delete=moving undo=moving", "tasks"},
		{"purge.moved", "purge=moving", true, "", "delete=other purge=other", ""},
	} {
		t.Run(tt.point+" "+tt.do, func(t *testing.T) {
			root := t.TempDir()
			s := storetest.Open(t, root)
			k := storetest.Create(t, s, "moving")
			storetest.Commit(t, k, task.UI, storetest.UIRow(2, strings.Repeat("long ", 80<<10)))
			storetest.Close(t, k)
			storetest.Close(t, storetest.Create(t, s, "other"))
			said := storetest.Rows(storetest.View(t, s, "moving").State)
			if tt.trash {
				storetest.Delete(t, s, "moving")
			}
			env := []string{"STORE_TEST_ROOT=" + root, "STORE_TEST_DO=" + tt.do}
			if out, err := process(t, "organise", append(env, "ROOST_FAILPOINT="+tt.point)...).CombinedOutput(); err == nil {
				t.Fatalf("not killed: %s", out)
			}
			whole := func(want string) {
				t.Helper()
				var at []string
				for _, place := range []string{"tasks", "trash"} {
					if !storetest.Exists(filepath.Join(root, place), "moving") {
						continue
					}
					at = append(at, place)
					dir := filepath.Join(root, place, "moving")
					v := storetest.Must[*store.View](t)(s.ReadWhole(context.Background(), store.Ref{ID: "moving", Source: store.OwnSource, Dir: dir, Log: dir, Own: true}))
					if got := storetest.Rows(v.State); got != said || len(v.Summary.Damaged) > 0 {
						t.Errorf("in %s: %+v", place, v.Summary.Damaged)
					}
					storetest.Check(t, v.Close())
				}
				if got := strings.Join(at, " "); got != want {
					t.Fatalf("it is in %q, want %q", got, want)
				}
			}
			whole(tt.afterwards)
			if _, err := s.List(context.Background(), store.Filter{}); err != nil {
				t.Error(err)
			}
			out, err := process(t, "organise", "STORE_TEST_ROOT="+root, "STORE_TEST_DO="+tt.then).CombinedOutput()
			if err != nil {
				t.Fatalf("got %v %s, want no error", err, out)
			}
			whole(tt.place)
			storetest.Close(t, storetest.Create(t, s, "last")) // the index is behind by one writer at most
			want := []string{"last", "other"}
			if tt.place == "tasks" {
				want = []string{"last", "moving", "other"}
			} else if tt.place == "" {
				want = []string{"last"}
			}
			got := storetest.IndexIDs(t, s)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("index %s, want %v", got, want)
			}
			if left := storetest.Must[[]string](t)(filepath.Glob(filepath.Join(root, "trash", ".*"))); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// Processes tag, delete, restore and list at the same time, and some are killed in
// the middle: nothing that was acknowledged is lost, and every task is whole.
func TestOrganisedByManyProcesses(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "theirs")
	root := t.TempDir()
	s := storetest.Open(t, root, storage)
	for i := range 3 {
		storetest.Close(t, storetest.Create(t, s, fmt.Sprintf("task%d", i)))
	}
	env := []string{"STORE_TEST_ROOT=" + root, "STORE_TEST_SOURCES=" + storage}
	var cmds []*exec.Cmd
	for i := range 3 {
		steps := ""
		for n := range 4 {
			steps += fmt.Sprintf("p%dt%d=theirs p%dt%d=task%d list delete=task%d list restore=task%d ", i, n, i, n, i, i, i)
		}
		cmd := process(t, "organise", append(env, "STORE_TEST_DO="+steps)...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		storetest.Check(t, cmd.Start())
		cmds = append(cmds, cmd)
	}
	for _, point := range []string{"trash.marked", "trash.moved", "restore.moved"} {
		storetest.Close(t, storetest.Create(t, s, point))
		cmd := process(t, "organise", append(env, "ROOST_FAILPOINT="+point, "STORE_TEST_DO=extra="+point+" delete="+point+" restore="+point)...)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s: not killed: %s", point, out)
		}
	}
	for _, cmd := range cmds {
		storetest.Check(t, cmd.Wait())
	}
	if got := storetest.Listed(t, s, "theirs").Tags; len(got) != 12 {
		t.Errorf("tags of theirs: %v", got)
	}
	for i := range 3 {
		if got := storetest.Listed(t, s, fmt.Sprintf("task%d", i)); len(got.Tags) != 4 || len(got.Damaged) > 0 {
			t.Errorf("got %+v, want len(got.Tags) = 4 and len(got.Damaged) <= 0", got)
		}
	}
	if got := storetest.TrashNames(t, s); got != "trash.moved" {
		t.Errorf("trash: %s", got)
	}
}
