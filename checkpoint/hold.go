package checkpoint

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// Hold records what is at paths now and keeps it: when it returns nil, the contents are durable. Paths are as tools
// name them, relative or absolute; the map's keys are recorded paths, and there may be two for one path: a link, and
// its target. Paths outside the workspace, or inside git's own data, are left out.
//
// A file over a limit, or an unreadable one, is in the map without Blob. An error means that contents could not be
// kept for another reason (a full disk); then possibly none is kept.
func (k *Keeper) Hold(ctx context.Context, paths []string) (map[string]api.FileVersion, error) {
	var all []string
	for _, given := range paths {
		list, err := k.expand(given)
		if err != nil {
			return nil, fmt.Errorf("keep %s for a checkpoint: %w", given, err)
		}
		all = append(all, list...)
	}
	slices.Sort(all)
	return k.HoldAt(ctx, slices.Compact(all))
}

// HoldAt is Hold for recorded paths. It follows no link, and leaves out what lies behind one.
func (k *Keeper) HoldAt(ctx context.Context, paths []string) (map[string]api.FileVersion, error) {
	defer k.store.Keep()() // no collection removes it between the write and the record of it
	out, err := k.hold(ctx, paths)
	if err != nil {
		return nil, fmt.Errorf("keep files for a checkpoint: %w", err)
	}
	k.Know(paths...)
	k.noteHeld(slices.Collect(maps.Values(out))...)
	return out, nil
}

func (k *Keeper) hold(ctx context.Context, paths []string) (map[string]api.FileVersion, error) {
	if len(paths) == 0 {
		return map[string]api.FileVersion{}, nil
	}
	g, err := k.w.OpenTree()
	if err != nil {
		return nil, err
	}
	defer g.Close()
	b, err := k.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer b.Discard()
	room, err := k.room(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]api.FileVersion, len(paths))
	for _, p := range paths {
		if _, ok, err := g.Look(OnDisk(p)); !plain(p) || err == nil && !ok {
			continue
		}
		v, err := k.version(ctx, g, p, k.o.MaxHold, func(c *fileContent) (string, error) {
			if k.isSound(ctx, c.hash()) {
				return string(c.hash()), nil
			}
			if c.size > k.o.MaxHold || c.size > room {
				return "", nil
			}
			room -= c.size
			id, err := b.Add(c.data)
			return string(id), err
		})
		if err != nil {
			return nil, err
		}
		out[p] = v
	}
	if err := b.Close(); err != nil {
		return nil, err
	}
	return out, nil
}

// room returns how many more bytes the store may take.
func (k *Keeper) room(ctx context.Context) (int64, error) {
	size, err := k.Size(ctx)
	return max(k.o.MaxStore-size, 0), err
}

// isSound reports whether a content need not be written again: it is in the store, and this keeper read it once and
// found it whole. If a content is damaged, the next keeper that has it writes it again.
func (k *Keeper) isSound(ctx context.Context, id content.Hash) bool {
	if !k.store.Has(ctx, id) {
		return false
	}
	k.mu.Lock()
	sound := k.sound[id]
	k.mu.Unlock()
	if sound {
		return true
	}
	if err := k.store.Verify(ctx, id); err != nil {
		return ctx.Err() != nil // a damaged content is marked from now on, and not found
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sound[id] = true
	return true
}

// Look returns what is at recorded paths now. It keeps no content: Blob is set only where the store already has the
// content. Every path is in the map.
func (k *Keeper) Look(ctx context.Context, paths []string) (map[string]api.FileVersion, error) {
	g, err := k.w.OpenTree()
	if err != nil {
		return nil, err
	}
	defer g.Close()
	out := make(map[string]api.FileVersion, len(paths))
	for _, p := range paths {
		v, err := k.version(ctx, g, p, -1, func(c *fileContent) (string, error) {
			if k.store.Contains(ctx, c.hash()) {
				return string(c.hash()), nil
			}
			if old := hex.EncodeToString(c.blob[:]); k.old.Has(old) {
				return old, nil
			}
			return "", nil
		})
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", p, err)
		}
		out[p] = v
	}
	return out, nil
}

// version reads what is at a recorded path; keep returns the name of the content in the store, "" when it is not
// kept. keep gets the data of files up to small bytes, and of links.
func (k *Keeper) version(ctx context.Context, g *workspace.Tree, p string, small int64,
	keep func(*fileContent) (string, error)) (api.FileVersion, error) {
	gone := api.FileVersion{Kind: api.KindGone}
	if !plain(p) {
		return api.FileVersion{Kind: api.KindOther}, nil
	}
	for range tries {
		if err := ctx.Err(); err != nil {
			return gone, err
		}
		info, ok, err := g.Look(OnDisk(p))
		switch {
		case errors.Is(err, fs.ErrPermission):
			return api.FileVersion{Kind: api.KindOther}, nil // below a closed folder: never touched
		case err != nil:
			return gone, err
		case !ok:
			return api.FileVersion{Kind: api.KindOther, Dirs: g.Missing(OnDisk(p))}, nil
		case info == nil:
			gone.Dirs = g.Missing(OnDisk(p))
			return gone, nil
		}
		var c fileContent
		kind := api.KindFile
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			kind = api.KindLink
			target, err := g.Readlink(OnDisk(p))
			if err != nil {
				continue // replaced since the stat
			}
			c = contentOf([]byte(target))
		case info.Mode().IsRegular():
			c, err = newReader(small).read(ctx, g, p)
			if errors.Is(err, errVanished) {
				continue
			}
			if err != nil && ctx.Err() != nil {
				return gone, ctx.Err()
			}
			if err != nil || !c.named {
				return unread(info), nil
			}
		default:
			return api.FileVersion{Kind: api.KindOther}, nil
		}
		blob, err := keep(&c)
		if err != nil {
			return gone, err
		}
		mode := info.Mode()
		if c.at.mode != 0 {
			mode = c.at.mode
		}
		return c.version(kind, mode, blob), nil
	}
	return api.FileVersion{Kind: api.KindOther}, nil // it changed during every read
}

// unread returns a file that may not be read.
func unread(info fs.FileInfo) api.FileVersion {
	return api.FileVersion{Kind: api.KindFile, Mode: uint32(info.Mode().Perm()), Size: info.Size()}
}

// Content returns the verified content of a version. The error wraps ErrUnkept when it is not in the store, and
// content.ErrTooLarge when it is over limit bytes (0 = no limit).
func (k *Keeper) Content(ctx context.Context, v api.FileVersion, limit int64) ([]byte, error) {
	if v.Blob == "" {
		return nil, ErrUnkept
	}
	data, err := k.Read(ctx, v, limit)
	if errors.Is(err, content.ErrMissing) {
		return nil, fmt.Errorf("%w: %w", ErrUnkept, err)
	}
	return data, err
}

// Snapshot is the input of Save.
type Snapshot struct {
	Task   string
	Number int
	Title  string
	At     int64  // Unix milliseconds
	Parent string // the result of Save for the task's previous checkpoint; "" for the first, or a lost one
	// Files is the whole tracked state: StateAt this checkpoint.
	Files map[string]api.FileVersion
	// Changed is the checkpoint's own record (CheckpointSaved.Files). The contents from before the changes are kept,
	// too, because Files does not hold them.
	Changed []task.CheckpointFile
}

// Save writes a manifest of the checkpoint, and holds it for the task; both are durable when Save returns nil. From
// then on, collections keep all contents that Files and Changed name, and those of earlier checkpoints. Save returns
// the manifest's hash.
//
// A manifest lists the files that the checkpoint changed, and names the manifest before it. The first one that a
// Keeper saves for a task lists all files; later ones list only files that earlier ones do not list. Manifests serve
// the collection, and users who look for a file when a journal is lost: a restore reads the journal.
func (k *Keeper) Save(ctx context.Context, s Snapshot) (commit string, err error) {
	commit, err = k.save(ctx, s)
	return commit, api.Failed(err, "save checkpoint %d of task %s", s.Number, s.Task)
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
		there, err := k.store.Find(ctx, parent)
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
	last, err := k.store.Name(ctx, owner)
	if err != nil && !errors.Is(err, content.ErrMissing) && !errors.Is(err, content.ErrDamaged) {
		return "", err
	}
	if err == nil && !slices.Contains(m.Parents, last) {
		there, err := k.store.Find(ctx, last)
		if err != nil {
			return "", err
		}
		if there {
			m.Parents = append(m.Parents, last)
		}
	}
	if m.Files, err = k.manifestFiles(ctx, s, named); err != nil {
		return "", err
	}
	done, err := b.AddManifest(m)
	if err != nil {
		return "", err
	}
	if err := b.Close(); err != nil {
		return "", err
	}
	if err := k.store.SetName(ctx, owner, done); err != nil {
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

// manifestFiles returns the files for a manifest: those that a checkpoint changed, before and after, and the part of
// the state that no earlier manifest names.
func (k *Keeper) manifestFiles(ctx context.Context, s Snapshot, named map[string]bool) (list []content.File, err error) {
	add := func(p string, v api.FileVersion, before bool) {
		f := content.File{Path: p, Kind: v.Kind, Before: before}
		if v.Kind == api.KindFile {
			f.Mode = strconv.FormatUint(uint64(v.Mode), 8)
		}
		if h := content.Hash(v.Hash); v.Blob != "" && err == nil {
			var there bool
			if there, err = k.store.Find(ctx, h); there {
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
// leaves such contents.
const holdTimeout = int64(time.Hour)

// noteHeld records contents that a checkpoint will name.
func (k *Keeper) noteHeld(versions ...api.FileVersion) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, v := range versions {
		if v.Blob != "" {
			k.unsaved[v.Blob] = time.Now().UnixNano()
		}
	}
}

// releaseHeld releases the contents that the task owns now, unless others still wait for a checkpoint, perhaps of
// another task.
func (k *Keeper) releaseHeld(s Snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for blob, at := range k.unsaved {
		if time.Now().UnixNano()-at > holdTimeout {
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
