package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/checkpoint/object"
	"github.com/roost-dev/roost/task"
)

// Snapshot is what a checkpoint saves.
type Snapshot struct {
	Task   string
	Number int
	Title  string
	At     int64  // Unix milliseconds
	Parent string // the commit of the task's checkpoint before; "" for the first, or one that is lost
	// Files is the whole tracked state: StateAt this checkpoint.
	Files map[string]task.FileVersion
	// Changed is the checkpoint's own record (CheckpointSaved.Files). What was there before is kept with it, because
	// the state does not hold it.
	Changed []task.CheckpointFile
}

// Save gives the task's state a commit, and makes the task's ref name it; both are durable when it returns nil. From
// then on garbage collection keeps all contents that Files and Changed name, and those of the checkpoints before.
//
// The commit's tree has "files", the state as far as git's trees can hold it; "before", what was there before; "more",
// contents under names that git refuses; and "manifest.json", everything that a tree cannot hold: modes, gone files,
// contents that were not kept. It is for people with git at hand, and for the collection: a restore follows the
// journal.
func (k *Keeper) Save(ctx context.Context, s Snapshot) (commit string, err error) {
	commit, err = k.save(ctx, s)
	if err != nil {
		return "", fmt.Errorf("save checkpoint %d of task %s: %w", s.Number, s.Task, err)
	}
	return commit, nil
}

func (k *Keeper) save(ctx context.Context, s Snapshot) (string, error) {
	ref, err := refOf(s.Task)
	if err != nil {
		return "", err
	}
	release := k.store.Keep() // no collection removes the contents before the ref names them
	defer release()
	b, err := k.store.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer b.Discard()
	before := map[string]task.FileVersion{}
	now := map[string]task.FileVersion{}
	for p, v := range s.Files {
		now[p] = v
	}
	for _, f := range s.Changed {
		if f.Was != nil && f.Was.Blob != "" {
			before[f.Path] = *f.Was
		}
		if _, ok := now[f.Path]; !ok {
			now[f.Path] = f.Now
		}
	}
	var top []object.TreeEntry
	m := manifest{Task: s.Task, Checkpoint: s.Number}
	var more []object.TreeEntry
	for _, part := range []struct {
		name  string
		files map[string]task.FileVersion
	}{{"before", before}, {"files", now}} {
		t := &builder{b: b, has: k.store.Find, part: part.name, manifest: &m, more: &more}
		id, err := t.build(part.files)
		if err != nil {
			return "", err
		}
		if id != "" {
			top = append(top, object.TreeEntry{Name: part.name, Mode: object.ModeTree, ID: id})
		}
	}
	if len(more) > 0 {
		id, err := b.Tree(more)
		if err != nil {
			return "", err
		}
		top = append(top, object.TreeEntry{Name: "more", Mode: object.ModeTree, ID: id})
	}
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return "", err
	}
	id, err := b.Blob(append(data, '\n'))
	if err != nil {
		return "", err
	}
	top = append(top, object.TreeEntry{Name: "manifest.json", Mode: object.ModeFile, ID: id})
	tree, err := b.Tree(top)
	if err != nil {
		return "", err
	}
	c := object.Commit{Tree: tree, At: time.UnixMilli(s.At), Message: message(s)}
	// A parent that is there and left out would take its contents to the collection.
	if parent := object.ID(s.Parent); parent.Valid() {
		there, err := k.store.Find(parent)
		if err != nil {
			return "", err
		}
		if there {
			c.Parents = []object.ID{parent}
		}
	}
	// The ref may know a commit that the journal of a killed task does not: its contents stay, and this is not the
	// place to judge them.
	last, err := k.store.Ref(ref)
	if err != nil && !errors.Is(err, object.ErrMissing) && !errors.Is(err, object.ErrDamaged) {
		return "", err
	}
	if err == nil && !slices.Contains(c.Parents, last) {
		there, err := k.store.Find(last)
		if err != nil {
			return "", err
		}
		if there {
			c.Parents = append(c.Parents, last)
		}
	}
	done, err := b.Commit(c)
	if err != nil {
		return "", err
	}
	if err := b.Close(); err != nil {
		return "", err
	}
	if err := k.store.SetRef(ref, done); err != nil {
		return "", err
	}
	release()
	k.releaseHeld(s)
	return string(done), nil
}

// holdTimeout is how long held contents without a checkpoint are kept from collection, in nanoseconds: a denied call
// leaves such.
const holdTimeout = int64(time.Hour)

// noteHeld notes contents that a checkpoint will name.
func (k *Keeper) noteHeld(versions ...task.FileVersion) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, v := range versions {
		if v.Blob != "" {
			k.unsaved[v.Blob] = nanosNow()
		}
	}
}

// releaseHeld releases what a ref reaches now, unless more contents wait for a checkpoint, perhaps of another task.
func (k *Keeper) releaseHeld(s Snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for blob, at := range k.unsaved {
		if nanosNow()-at > holdTimeout {
			delete(k.unsaved, blob)
		}
	}
	for _, v := range s.Files {
		delete(k.unsaved, v.Blob)
	}
	for _, f := range s.Changed {
		delete(k.unsaved, f.Now.Blob)
		if f.Was != nil {
			delete(k.unsaved, f.Was.Blob)
		}
	}
	if len(k.unsaved) == 0 {
		k.store.Settle()
	}
}

// message is for people who inspect the store with git.
func message(s Snapshot) string {
	title := strings.Join(strings.Fields(s.Title), " ")
	return fmt.Sprintf("c%d: %s\n\nRoost-Task: %s\nRoost-Checkpoint: %d\n", s.Number, title, s.Task, s.Number)
}

// refOf is the ref of a task.
func refOf(id string) (string, error) {
	if id == "" {
		return "", errors.New("a task without an id has no checkpoints")
	}
	return object.RefName(id), nil
}

// manifest holds what a git tree cannot.
type manifest struct {
	Task       string  `json:"task"`
	Checkpoint int     `json:"checkpoint"`
	Files      []extra `json:"files,omitempty"`
}

// extra has no hashes: the journal has them, and a hundred of them in each commit would
// take more room than the files.
type extra struct {
	Part string `json:"part"` // of the tree: files, before
	Path string `json:"path"` // as the journal has it
	Kind string `json:"kind"`
	Mode string `json:"mode,omitempty"` // octal
	More string `json:"more,omitempty"` // its name in "more"
	Lost bool   `json:"lost,omitempty"` // the content is not in the store
}

// builder writes the trees of one part.
type builder struct {
	b        *object.Batch
	has      func(object.ID) (bool, error)
	part     string
	manifest *manifest
	more     *[]object.TreeEntry
}

// node is a folder on its way to a tree.
type node struct {
	entries []object.TreeEntry
	folders map[string]*node
}

// build gives the tree's id, "" for an empty one.
func (t *builder) build(files map[string]task.FileVersion) (object.ID, error) {
	root := &node{}
	paths := make([]string, 0, len(files))
	for p := range files {
		paths = append(paths, p)
	}
	slices.Sort(paths) // the same state is the same tree
	folders := map[string]bool{}
	for p, v := range files {
		for dir := path.Dir(p); v.Blob != "" && dir != "." && !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for _, p := range paths {
		v := files[p]
		e := extra{Part: t.part, Path: p, Kind: v.Kind}
		if v.Kind == task.KindFile {
			e.Mode = strconv.FormatUint(uint64(v.Mode), 8)
		}
		mode := treeMode(v)
		there, err := false, error(nil)
		if v.Blob != "" {
			if there, err = t.has(object.ID(v.Blob)); err != nil {
				return "", err
			}
		}
		switch {
		case v.Blob == "":
			t.manifest.Files = append(t.manifest.Files, e)
			continue
		case !there:
			e.Lost = true
			t.manifest.Files = append(t.manifest.Files, e)
			continue
		case mode == 0 || !fits(p) || folders[p]: // a file now, and a folder at another time
			e.More = strconv.Itoa(len(*t.more))
			*t.more = append(*t.more, object.TreeEntry{Name: e.More, Mode: object.ModeFile, ID: object.ID(v.Blob)})
			t.manifest.Files = append(t.manifest.Files, e)
			continue
		case v.Kind == task.KindFile && v.Mode != 0o644 && v.Mode != 0o755:
			t.manifest.Files = append(t.manifest.Files, e)
		}
		at := root
		dir, name := path.Split(p)
		for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
			if part == "" {
				continue
			}
			part = onDiskName(part)
			if at.folders == nil {
				at.folders = map[string]*node{}
			}
			if at.folders[part] == nil {
				at.folders[part] = &node{}
			}
			at = at.folders[part]
		}
		at.entries = append(at.entries, object.TreeEntry{Name: onDiskName(name), Mode: mode, ID: object.ID(v.Blob)})
	}
	return t.write(root)
}

func (t *builder) write(n *node) (object.ID, error) {
	for name, sub := range n.folders {
		id, err := t.write(sub)
		if err != nil {
			return "", err
		}
		n.entries = append(n.entries, object.TreeEntry{Name: name, Mode: object.ModeTree, ID: id})
	}
	if len(n.entries) == 0 {
		return "", nil
	}
	return t.b.Tree(n.entries)
}

// treeMode is git's mode for a version, 0 when it has none.
func treeMode(v task.FileVersion) uint32 {
	switch {
	case v.Kind == task.KindLink:
		return object.ModeLink
	case v.Kind == task.KindFile && v.Mode&0o100 != 0:
		return object.ModeExecutable
	case v.Kind == task.KindFile:
		return object.ModeFile
	}
	return 0
}

// onDiskName is one name of a recorded path as its bytes were; git's trees hold any.
func onDiskName(name string) string { return strings.TrimSuffix(OnDisk(name), "/") }

// fits reports whether a tree can hold all names of a path.
func fits(p string) bool {
	for name := range strings.SplitSeq(p, "/") {
		if object.CheckName(onDiskName(name)) != nil {
			return false
		}
	}
	return true
}
