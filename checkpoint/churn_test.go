package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// Somebody edits, replaces, truncates and removes files all the time: then nobody can say
// what a command did, but nothing is kept under a wrong name, nothing fails, and files
// that nobody touches are not told.
func TestSurveysWhileFilesChange(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	for i := range 20 {
		l.write(fmt.Sprintf("still/%d", i), fmt.Sprint(i))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		rnd := rand.New(rand.NewPCG(1, 2))
		for {
			select {
			case <-stop:
				return
			default:
			}
			name := l.at(fmt.Sprintf("busy%d", rnd.IntN(5)))
			switch rnd.IntN(6) {
			case 0:
				_ = os.RemoveAll(name)
			case 1:
				_ = os.Symlink("nowhere", name)
			case 2:
				_ = os.Mkdir(name, 0o777)
			case 3:
				_ = os.Truncate(name, rnd.Int64N(1000))
			default:
				_ = os.WriteFile(name+"~", make([]byte, rnd.IntN(100_000)), 0o644)
				_ = os.Rename(name+"~", name)
			}
		}
	})
	for range 15 {
		s, err := l.k.Survey(t.Context())
		l.must(err)
		list, err := s.Changes(t.Context())
		l.must(err)
		for _, f := range list {
			if len(f.Path) > 5 && f.Path[:5] == "still" {
				t.Errorf("%s did not change", f.Path)
			}
			for _, v := range []api.FileVersion{*f.Was, f.Now} {
				if v.Blob == "" {
					continue
				}
				data, err := l.k.Content(t.Context(), v, 0)
				if err != nil || int64(len(data)) != v.Size || workspace.HashOf(data) != v.Hash || workspace.HashOf(data) != v.Blob {
					t.Errorf("%s: %+v has %d bytes, %v", f.Path, v, len(data), err)
				}
			}
		}
		held, err := l.k.Hold(t.Context(), []string{"busy0", "busy1", "still/1"})
		l.must(err)
		if v := held["still/1"]; l.content(v) != "1" {
			t.Errorf("still/1: %+v", v)
		}
	}
	close(stop)
	wg.Wait()
}

// Tasks come and go, processes too, and somebody collects garbage in between: what a
// living task's checkpoint named can be had.
func TestNothingThatATaskNeedsIsCollected(t *testing.T) {
	few(t, 15)
	rapid.Check(t, func(rt *rapid.T) {
		o := Options{Git: "none"}
		l := newBench(t, o)
		type saved struct {
			number int
			commit string
			needs  map[string]api.FileVersion // by content
			state  map[string]api.FileVersion
		}
		tasks := map[string]*saved{}
		n := 0
		for range rapid.IntRange(3, 15).Draw(rt, "steps") {
			id := rapid.SampledFrom([]string{"t1", "t2", "T1"}).Draw(rt, "task")
			switch rapid.SampledFrom([]string{"save", "save", "command", "collect", "forget", "restart"}).Draw(rt, "what") {
			case "save", "command":
				s := tasks[id]
				if s == nil {
					s = &saved{needs: map[string]api.FileVersion{}, state: map[string]api.FileVersion{}}
					tasks[id] = s
				}
				n++
				p := rapid.SampledFrom([]string{"a", "d/b"}).Draw(rt, "path")
				text := fmt.Sprint("content ", n)
				l.write(p, fmt.Sprint("before ", n))
				var changed []task.CheckpointFile
				if rapid.Bool().Draw(rt, "by a command") {
					sv := l.survey()
					l.write(p, text)
					list, err := sv.Changes(t.Context())
					if err != nil || len(list) != 1 {
						rt.Fatalf("changes %v, %v", list, err)
					}
					changed = list
					s.needs[fmt.Sprint("before ", n)] = *list[0].Was
				} else {
					l.write(p, text)
					changed = []task.CheckpointFile{{Path: p, Now: l.hold(p)[p]}}
				}
				s.state[p] = changed[0].Now
				s.needs[text] = changed[0].Now
				s.number++
				s.commit = l.save(Snapshot{Task: id, Number: s.number, Parent: s.commit, Files: s.state, Changed: changed})
			case "collect":
				if _, err := l.k.Collect(t.Context(), false, true); err != nil {
					rt.Fatal(err)
				}
			case "forget":
				l.must(l.k.Forget(t.Context(), OwnerOf(id)))
				delete(tasks, id)
			case "restart":
				l.must(l.k.Close())
				l.k = l.open(o)
			}
			for id, s := range tasks {
				for text, v := range s.needs {
					if got := l.content(v); got != text {
						rt.Fatalf("%s: %q is %q now", id, text, got)
					}
				}
			}
		}
		names, err := l.k.store.Names(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		got, want := map[string]string{}, map[string]string{}
		for owner, n := range names {
			got[owner] = string(n.Manifest)
		}
		for id, s := range tasks {
			want[content.OwnerName(id)] = s.commit
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Error(d)
		}
	})
}
