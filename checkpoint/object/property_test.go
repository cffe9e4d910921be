package object

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// world is a store as two processes see it, and a model of it: what each ref names,
// and what each of the two relies on.
type world struct {
	t      *rapid.T
	dir    string
	open   [2]*Store
	refs   map[string]ID
	states map[ID]map[string]string // by commit
	held   [2]map[ID]bool
}

func (w *world) fail(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) who() int { return rapid.IntRange(0, 1).Draw(w.t, "who") }

func (w *world) ref() string {
	return rapid.SampledFrom([]string{"refs/roost/a", "refs/roost/b", "refs/heads/c"}).Draw(w.t, "ref")
}

// save writes a state; it is held until its Store settles.
func (w *world) save(who int, parents ...ID) ID {
	state := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "d/a", "d/b", "e/x"}), rapid.SampledFrom([]string{"", "1", "2", text(4, 2000)}), 0, 5).Draw(w.t, "state")
	b, err := w.open[who].Begin(context.Background())
	w.fail(err)
	var id ID
	w.fail(func() (err error) {
		folders := map[string][]TreeEntry{}
		for path, content := range state {
			dir, name := filepath.Split(path)
			blob, err := b.Blob([]byte(content))
			w.fail(err)
			folders[dir] = append(folders[dir], TreeEntry{name, ModeFile, blob})
		}
		root := folders[""]
		for dir, list := range folders {
			if dir != "" {
				tree, err := b.Tree(list)
				w.fail(err)
				root = append(root, TreeEntry{dir[:len(dir)-1], ModeTree, tree})
			}
		}
		tree, err := b.Tree(root)
		w.fail(err)
		id, err = b.Commit(Commit{Tree: tree, Parents: parents})
		return err
	}())
	if rapid.Bool().Draw(w.t, "discarded") {
		b.Discard()
		return ""
	}
	w.fail(b.Close())
	w.held[who][id] = true
	w.states[id] = state
	return id
}

// check reads everything that must be there.
func (w *world) check(t *rapid.T) {
	must := maps.Clone(w.held[0])
	maps.Copy(must, w.held[1])
	for _, id := range w.refs {
		must[id] = true
	}
	for id := range must {
		for _, s := range w.open {
			if !s.Has(id) {
				t.Fatalf("%s is gone", id)
			}
			got := map[string]string{}
			w.fail(w.read(s, id, "", got))
			if !maps.Equal(got, w.states[id]) {
				t.Fatalf("%s reads as %v, want %v", id, got, w.states[id])
			}
		}
	}
	refs, err := w.open[0].Refs()
	w.fail(err)
	if !maps.Equal(refs, w.refs) {
		t.Fatalf("refs %v, want %v", refs, w.refs)
	}
}

func (w *world) read(s *Store, id ID, dir string, out map[string]string) error {
	if dir == "" {
		c, err := s.Commit(context.Background(), id)
		if err != nil {
			return err
		}
		id = c.Tree
	}
	list, err := s.Tree(context.Background(), id)
	for _, e := range list {
		if e.Mode == ModeTree {
			err = errors.Join(err, w.read(s, e.ID, dir+e.Name+"/", out))
			continue
		}
		data, e2 := s.Read(context.Background(), e.ID, 0)
		out[dir+e.Name], err = string(data), errors.Join(err, e2)
	}
	return err
}

// quickDir is a folder in memory where there is one: syncing is most of what
// thousands of batches take, and not what this is about.
func quickDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "roost-object-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A store behaves as a map of what was written, from which only goes what no ref
// reaches and nobody relies on.
func TestAStoreIsAMap(t *testing.T) {
	home := quickDir(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		w := &world{t: t, dir: filepath.Join(home, fmt.Sprint(n)), refs: map[string]ID{}, states: map[ID]map[string]string{}}
		reopen := func(who int) {
			if w.open[who] != nil {
				w.open[who].Close()
			}
			s, err := Open(w.dir)
			w.fail(err)
			w.open[who], w.held[who] = s, map[ID]bool{}
		}
		reopen(0)
		reopen(1)
		defer func() { w.open[0].Close(); w.open[1].Close(); os.RemoveAll(w.dir) }()
		actions := map[string]func(*rapid.T){
			"save": func(*rapid.T) { w.save(w.who()) },
			"save and name": func(*rapid.T) {
				who, name := w.who(), w.ref()
				var parents []ID
				if old := w.refs[name]; old != "" {
					parents = []ID{old}
				}
				if id := w.save(who, parents...); id != "" {
					w.fail(w.open[who].SetRef(name, id))
					w.refs[name] = id
				}
			},
			"delete": func(*rapid.T) {
				name := w.ref()
				w.fail(w.open[w.who()].DeleteRef(name))
				delete(w.refs, name)
			},
			"settle": func(*rapid.T) {
				who := w.who()
				w.open[who].Settle()
				clear(w.held[who])
			},
			"reopen": func(*rapid.T) { reopen(w.who()) },
			"collect": func(*rapid.T) {
				_, err := w.open[w.who()].Collect(context.Background(), CollectOptions{})
				w.fail(err)
			},
			"": w.check,
		}
		t.Repeat(actions)
		// At the end nobody holds anything: only what refs reach is left.
		reopen(0)
		reopen(1)
		_, err := w.open[0].Collect(context.Background(), CollectOptions{})
		w.fail(err)
		w.check(t)
		for id := range w.states {
			named := false
			for name := range w.refs {
				named = named || w.reaches(name, id)
			}
			if w.open[1].Has(id) != named {
				t.Fatalf("%s is there: %v, a ref reaches it: %v", id, !named, named)
			}
		}
	})
}

// reaches follows a ref's parents.
func (w *world) reaches(name string, id ID) bool {
	for at := w.refs[name]; ; {
		if at == id {
			return true
		}
		c, err := w.open[1].Commit(context.Background(), at)
		w.fail(err)
		if len(c.Parents) == 0 {
			return false
		}
		at = c.Parents[0]
	}
}
