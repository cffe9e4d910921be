package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// Applied is what Apply did.
type Applied struct {
	Files int      // files that hold their target now, including those that already did
	Left  []string // files that held something else than the intent expects: left alone; by path
}

// ErrStuck: a restore failed half-way, and not all of its changes could be undone. The error names the files. The
// intent still holds their targets: Apply can be repeated.
var ErrStuck = errors.New("some files were put back and could not be changed back")

// Apply puts the files of an intent in their place: a file that is still From becomes To, one that is To already is
// done, and everything else is left alone. So it can be repeated after a kill, by any process. Deletions come first,
// then all others, so that files can take the place of folders and the other way round. Folders that are made on the
// way stay within the workspace, and nothing is written through a link. All is durable when it returns nil.
//
// Missing contents, of a file's target or of what would be lost, are found before the first file is touched; the error
// wraps ErrUnkept. When something fails later, Apply undoes its changes, and the error wraps ErrStuck where that fails
// too. The changes of an earlier call that was killed stay: the reversed intent (task.Swapped) undoes all of them.
func (k *Keeper) Apply(ctx context.Context, files []task.RestoreFile) (Applied, error) {
	for _, f := range files {
		if err := k.ready(ctx, f); err != nil {
			return Applied{}, fmt.Errorf("put files back: %w", err)
		}
	}
	done, out, err := k.apply(ctx, files)
	if err == nil {
		return out, nil
	}
	err = fmt.Errorf("put files back: %w", err)
	// The caller may have given up, but half-done changes must not stay for that. Changes that something else made
	// since stay.
	if _, _, bad := k.apply(context.WithoutCancel(ctx), task.Swapped(done)); bad != nil {
		return Applied{}, fmt.Errorf("%w; %w: %w", err, ErrStuck, bad)
	}
	return Applied{}, err
}

// apply also returns what it changed.
func (k *Keeper) apply(ctx context.Context, files []task.RestoreFile) (done []task.RestoreFile, out Applied, err error) {
	b := k.w.NewRestorer()
	list := ordered(files)
	orders := make([]workspace.RestoreStep, len(list))
	for i, f := range list {
		orders[i] = workspace.RestoreStep{
			Path: OnDisk(f.Path), From: thing(f.From), To: thing(f.To),
			Data: func() ([]byte, error) { return k.Content(ctx, f.To, 0) },
		}
	}
	failed, err := b.RestoreAll(ctx, orders, func(i int, put workspace.RestoreResult) {
		if put == workspace.LeftAlone {
			out.Left = append(out.Left, list[i].Path)
			return
		}
		if put == workspace.Restored {
			done = append(done, list[i])
			failpoint.Hit("restore.applied-one")
		}
		out.Files++
	})
	if err != nil {
		// It may be half done, for example where a folder was made for it.
		return append(done, list[failed]), out, err
	}
	failpoint.Hit("restore.applied-all")
	slices.Sort(out.Left)
	return done, out, b.Sync()
}

// ready reports whether a file that is From could be put in its place, and back.
func (k *Keeper) ready(ctx context.Context, f task.RestoreFile) error {
	kept := func(v api.FileVersion) bool {
		return !present(v) || k.has(v) // the safety checkpoint's ref holds it
	}
	if kept(f.From) && kept(f.To) || f.From.Kind == f.To.Kind && f.From.Hash != "" && f.From.Hash == f.To.Hash {
		return nil
	}
	now, err := k.Look(ctx, []string{f.Path})
	if err != nil || !now[f.Path].Same(f.From) {
		return err // it is not touched
	}
	return fmt.Errorf("%s: %w", f.Path, ErrUnkept)
}

// ordered puts deletions first, deepest paths first.
func ordered(files []task.RestoreFile) []task.RestoreFile {
	var gone, rest []task.RestoreFile
	for _, f := range files {
		if present(f.To) {
			rest = append(rest, f)
		} else {
			gone = append(gone, f)
		}
	}
	byPath := func(a, b task.RestoreFile) int { return strings.Compare(a.Path, b.Path) }
	slices.SortStableFunc(gone, func(a, b task.RestoreFile) int { return byPath(b, a) })
	slices.SortStableFunc(rest, byPath)
	return append(gone, rest...)
}

// thing is a version as the workspace knows it.
func thing(v api.FileVersion) workspace.Entry {
	switch v.Kind {
	case api.KindFile:
		return workspace.Entry{Kind: workspace.File, Mode: fs.FileMode(v.Mode), Hash: v.Hash}
	case api.KindLink:
		return workspace.Entry{Kind: workspace.Link, Hash: v.Hash}
	case api.KindGone:
		return workspace.Entry{Kind: workspace.Absent, MissingParents: v.Dirs}
	}
	return workspace.Entry{Kind: workspace.Foreign}
}
