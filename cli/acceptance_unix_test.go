//go:build unix

package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
)

// crowdEnv says how long processes work beside each other in TestCrowd, e.g. 10m; the
// default is short.
const crowdEnv = "ROOST_TEST_CROWD"

// Several people organise the same tasks at once, from shells of their own, and their
// processes are killed at random moments: nothing that was acknowledged is lost, no
// command fails that should not, no other task changes, and the storages of other tools
// are never touched.
func TestCrowd(t *testing.T) {
	lasts := 8 * time.Second
	if testing.Short() {
		lasts = 3 * time.Second
	}
	if text := os.Getenv(crowdEnv); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		must(t, err)
	}
	c := newCrowd(t)
	end := time.Now().Add(lasts)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var people sync.WaitGroup
	for i := range 3 {
		p := &person{crowd: c, name: fmt.Sprintf("p%d", i), rand: rand.New(rand.NewPCG(seed, uint64(i))), titles: map[string][]string{}, tags: map[string][]string{}, away: map[string]string{}}
		c.people = append(c.people, p)
		people.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				p.act()
			}
		})
	}
	people.Wait()
	c.settle()
}

// crowd is what the people work on.
type crowd struct {
	*sandbox
	t        *testing.T
	arrivals string // a storage that is imported
	foreign  map[string]string
	ids      []string // of all tasks that are there from the beginning
	said     map[string]string
	people   []*person

	mu           sync.Mutex
	runs, killed int
}

func newCrowd(t *testing.T) *crowd {
	s := newSandbox(t)
	c := &crowd{sandbox: s, t: t, arrivals: filepath.Join(s.dir, "arrivals"), said: map[string]string{}}
	put := func(to, id, words string) {
		kept := s.store
		s.store = to
		s.foreign(id, words, 1776200000000)
		s.store = kept
	}
	mine := filepath.Join(s.dir, "mine")
	for i := range 3 {
		for _, kind := range []string{"titled", "moving", "shared"} {
			id := fmt.Sprintf("%s-theirs-p%d", kind, i)
			put(s.store, id, "words of "+id)
			c.ids = append(c.ids, id)
			id = fmt.Sprintf("%s-mine-p%d", kind, i)
			put(mine, id, "words of "+id)
			c.ids = append(c.ids, id)
		}
		put(c.arrivals, fmt.Sprintf("arrival-%d", i), strings.Repeat("many words ", 5000))
	}
	if r := s.roost("import", mine); r.code != failure.ExitDone {
		t.Fatal(r.err)
	}
	for _, id := range c.ids {
		if r := s.roost("show", id, "--ui", "--json"); r.code == failure.ExitDone {
			c.said[id] = r.out
		}
	}
	c.foreign = contents(t, s.store, c.arrivals)
	return c
}

// contents are the sums and times of every file below some folders.
func contents(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			out[path] = info.Mode().String() + info.ModTime().String()
			if info.Mode().IsRegular() {
				data, err := os.ReadFile(path)
				out[path] += fmt.Sprintf("%x", sha256.Sum256(data))
				return err
			}
			return nil
		}))
	}
	return out
}

// person is one of the crowd, and what was acknowledged to them.
type person struct {
	*crowd
	name   string
	rand   *rand.Rand
	titles map[string][]string // that a task may have: the one acknowledged last, and those that a kill left open
	tags   map[string][]string
	away   map[string]string // yes, no, or "" for who knows
}

// run is a process, which may be killed. ok means that it said that it was done.
func (p *person) run(allowed []int, args ...string) (out string, ok bool) {
	cmd := p.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		p.t.Error(err)
		return "", false
	}
	if p.rand.IntN(3) == 0 {
		after := time.AfterFunc(time.Duration(p.rand.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		defer after.Stop()
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled()
	p.mu.Lock()
	p.runs++
	if killed {
		p.killed++
	}
	p.mu.Unlock()
	code := cmd.ProcessState.ExitCode()
	if !killed && code != failure.ExitDone && !slices.Contains(allowed, code) {
		p.t.Errorf("%v: exit %d\n%s%s", args, code, stdout.String(), stderr.String())
	}
	return stdout.String(), err == nil
}

// act does one thing.
func (p *person) act() {
	whose := []string{"mine", "theirs"}[p.rand.IntN(2)]
	titled, moving := "titled-"+whose+"-"+p.name, "moving-"+whose+"-"+p.name
	shared := fmt.Sprintf("shared-%s-p%d", whose, p.rand.IntN(3))
	word := fmt.Sprintf("%s-%d", p.name, p.rand.IntN(1e9))
	busy := []int{failure.ExitBusy} // another one has the task in this moment
	switch p.rand.IntN(10) {
	case 0:
		p.looks()
	case 1:
		p.run(nil, "search", "words", "--json")
	case 2:
		p.run(nil, "export", titled, "-o", filepath.Join(p.dir, p.name+".md"))
	case 3:
		p.run(busy, "import", p.arrivals)
	case 4, 5:
		if p.titles[titled] == nil {
			p.titles[titled] = []string{"words of " + titled}
		}
		p.titles[titled] = append(p.titles[titled], word)
		if _, ok := p.run(nil, "rename", titled, word); ok {
			p.titles[titled] = []string{word}
		}
	case 6, 7:
		if _, ok := p.run(busy, "tag", shared, "+"+word); ok {
			p.tags[shared] = append(p.tags[shared], word)
		}
	case 8:
		if p.away[moving] == "yes" {
			p.back(moving)
			return
		}
		p.away[moving] = ""
		allowed := []int{failure.ExitNotFound} // it went before the kill
		if _, ok := p.run(allowed, "delete", moving); ok {
			p.away[moving] = "yes"
		}
	default:
		p.back(moving)
	}
}

// back gets a task out of the trash, in one of the ways.
func (p *person) back(moving string) {
	was := p.away[moving]
	allowed := []int{failure.ExitNotFound}
	if was == "yes" {
		allowed = nil
	}
	p.away[moving] = ""
	how := []string{"trash", "restore", moving}
	if was == "yes" && p.rand.IntN(2) == 0 {
		how = []string{"undo", moving}
	}
	if _, ok := p.run(allowed, how...); ok {
		p.away[moving] = "no"
	}
}

// looks checks what a list shows in the middle of it all: whatever others do, every
// task stands in it once, but for those that somebody is moving.
func (p *person) looks() {
	out, ok := p.run(nil, "list", "--json")
	if !ok {
		return
	}
	var list struct{ Items []api.Summary }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		p.t.Errorf("list: %v", err)
		return
	}
	seen := map[string]int{}
	for _, t := range list.Items {
		seen[t.ID]++
		if len(t.Damaged) > 0 {
			p.t.Errorf("%s: got %+v, want len(t.Damaged) <= 0", t.ID, t.Damaged)
		}
	}
	for _, id := range p.ids {
		if n := seen[id]; n > 1 || n == 0 && !strings.HasPrefix(id, "moving-") {
			p.t.Errorf("%s is listed %d times", id, n)
		}
	}
}

// settle looks at what there is when all is quiet.
func (c *crowd) settle() {
	t := c.t
	t.Logf("%d processes, %d of them killed", c.runs, c.killed)
	if c.killed == 0 && c.runs > 50 {
		t.Error("nobody was killed")
	}
	if r := c.roost("import", c.arrivals, "--json"); r.code != failure.ExitDone {
		t.Errorf("import: exit %d\n%s", r.code, r.err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.root, "tasks", ".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	there := map[string]api.Summary{}
	for _, sum := range c.list() {
		there[sum.ID] = sum
	}
	var bin struct{ Items []api.DeletedTask }
	r := c.roost("trash", "list", "--json")
	if err := json.Unmarshal([]byte(r.out), &bin); err != nil {
		t.Fatal(err)
	}
	gone := map[string]bool{}
	for _, x := range bin.Items {
		gone[x.ID] = true
	}
	for _, id := range c.ids {
		if _, listed := there[id]; listed == gone[id] {
			t.Errorf("%s: listed %v, in the trash %v", id, listed, gone[id])
		}
	}
	for _, p := range c.people {
		for id, open := range p.titles {
			if got := there[id].Title; !slices.Contains(open, got) {
				t.Errorf("%s is called %s, not one of %v", id, got, open)
			}
		}
		for id, tags := range p.tags {
			for _, tag := range tags {
				if !slices.Contains(there[id].Tags, tag) {
					t.Errorf("%s lost the tag %s", id, tag)
				}
			}
		}
		for id, away := range p.away {
			if away != "" && (away == "yes") != gone[id] {
				t.Errorf("%s: in the trash %v, it was said %q", id, gone[id], away)
			}
		}
	}
	for id, text := range c.said {
		if gone[id] {
			if r := c.roost("trash", "restore", id); r.code != failure.ExitDone {
				t.Errorf("restore %s: %s", id, r.err)
			}
		}
		if r := c.roost("show", id, "--ui", "--json"); r.out != text {
			t.Errorf("%s reads otherwise: %.200s %s", id, r.out, r.err)
		}
	}
	if d := cmp.Diff(c.foreign, contents(t, c.store, c.arrivals)); d != "" {
		t.Errorf("a storage of another tool was changed: %s", d)
	}
	if r := c.roost("doctor", "--json"); r.code != failure.ExitDone {
		t.Errorf("doctor: exit %d\n%s", r.code, r.out)
	}
}
