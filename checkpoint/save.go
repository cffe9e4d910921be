package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/task"
)

// Snapshot is what a checkpoint saves.
type Snapshot struct {
	Task   string
	Number int
	Title  string
	At     int64  // Unix milliseconds
	Parent string // what Save returned for the task's checkpoint before; "" for the first, or one that is lost
	// Files is the whole tracked state: StateAt this checkpoint.
	Files map[string]api.FileVersion
	// Changed is the checkpoint's own record (CheckpointSaved.Files). What was there before is kept with it, because
	// the state does not hold it.
	Changed []task.CheckpointFile
}

// Save gives the task's state a manifest, and the manifest to the task; both are durable when it returns nil. From
// then on collection keeps all contents that Files and Changed name, and those of the checkpoints before. It returns
// the manifest's hash.
//
// A manifest lists what the checkpoint changed and names the manifest before it. The first one that a Keeper saves
// for a task lists the whole state; later ones list of it what the ones before do not name. It serves the collection,
// and users that look for a file when a journal is lost: a restore follows the journal.
func (k *Keeper) Save(ctx context.Context, s Snapshot) (commit string, err error) {
	commit, err = k.save(ctx, s)
	if err != nil {
		return "", fmt.Errorf("save checkpoint %d of task %s: %w", s.Number, s.Task, err)
	}
	return commit, nil
}

func (k *Keeper) save(ctx context.Context, s Snapshot) (string, error) {
	if s.Task == "" {
		return "", errNoTask
	}
	owner := OwnerOf(s.Task)
	release := k.store.Keep() // no collection removes the contents before the task has the manifest
	defer release()
	b, err := k.begin(ctx)
	if err != nil {
		return "", err
	}
	defer b.Discard()
	title := strings.Join(strings.Fields(s.Title), " ")
	m := content.Manifest{Title: fmt.Sprintf("task %s, checkpoint c%d: %s", s.Task, s.Number, title), At: s.At}
	// A parent that is present and left out would lose its contents to the collection.
	named := map[string]bool{} // contents that the parent is known to reach
	if parent := content.Hash(s.Parent); parent.Valid() {
		there, err := k.store.Find(parent)
		if err != nil {
			return "", err
		}
		if there {
			m.Parents = []content.Hash{parent}
			named = k.reachedBy(owner, s.Parent)
		}
	}
	// The task may have a manifest that the journal of a killed process does not name: its contents stay, and this is
	// not the place to judge them.
	last, err := k.store.Name(owner)
	if err != nil && !errors.Is(err, content.ErrMissing) && !errors.Is(err, content.ErrDamaged) {
		return "", err
	}
	if err == nil && !slices.Contains(m.Parents, last) {
		there, err := k.store.Find(last)
		if err != nil {
			return "", err
		}
		if there {
			m.Parents = append(m.Parents, last)
		}
	}
	if m.Files, err = k.manifestFiles(s, named); err != nil {
		return "", err
	}
	done, err := b.AddManifest(m)
	if err != nil {
		return "", err
	}
	if err := b.Close(); err != nil {
		return "", err
	}
	if err := k.store.SetName(owner, done); err != nil {
		return "", err
	}
	release()
	k.releaseHeld(s)
	for _, f := range m.Files {
		named[string(f.Hash)] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.saved[owner] = saved{string(done), named}
	return string(done), nil
}

func (k *Keeper) reachedBy(owner, commit string) map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if last := k.saved[owner]; last.commit == commit {
		return maps.Clone(last.named)
	}
	return map[string]bool{}
}

// manifestFiles lists what a checkpoint changed, before and after, and of the rest of the state what is not named yet.
func (k *Keeper) manifestFiles(s Snapshot, named map[string]bool) (list []content.File, err error) {
	add := func(p string, v api.FileVersion, before bool) {
		f := content.File{Path: p, Kind: v.Kind, Before: before}
		if v.Kind == api.KindFile {
			f.Mode = strconv.FormatUint(uint64(v.Mode), 8)
		}
		if h := content.Hash(v.Hash); v.Blob != "" && err == nil {
			var there bool
			if there, err = k.store.Find(h); there {
				f.Hash = h // otherwise it was lost before
			}
		}
		list = append(list, f)
	}
	changed := map[string]api.FileVersion{}
	for _, c := range s.Changed {
		if c.Was != nil && c.Was.Blob != "" {
			add(c.Path, *c.Was, true)
		}
		add(c.Path, c.Now, false)
		changed[c.Path] = c.Now
	}
	for p, v := range s.Files {
		if now, ok := changed[p]; !named[v.Hash] && (len(named) == 0 || v.Blob != "") && (!ok || now != v) {
			add(p, v, false)
		}
	}
	slices.SortStableFunc(list, func(a, b content.File) int { return strings.Compare(a.Path, b.Path) })
	return list, err
}

// holdTimeout is how long held contents without a checkpoint are kept from collection, in nanoseconds: a denied call
// leaves such.
const holdTimeout = int64(time.Hour)

// noteHeld notes contents that a checkpoint will name.
func (k *Keeper) noteHeld(versions ...api.FileVersion) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, v := range versions {
		if v.Blob != "" {
			k.unsaved[v.Blob] = nanosNow()
		}
	}
}

// releaseHeld releases what the task owns now, unless more contents wait for a checkpoint, perhaps of another task.
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
