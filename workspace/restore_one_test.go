package workspace

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/roost-dev/roost/api"
)

// Restore puts the entry to at a path, relative to the root, if the path holds from.
// It follows no link, neither on the way nor at the end, and touches nothing that git
// keeps for itself: the error wraps ErrPath for such a path. data gives the content of
// a file, or where a link leads; it is called only when needed. A file is
// replaced whole and synced; one that differs in its mode only gets the mode. Folders
// are made as needed. With an entry that was absent together with folders above it,
// these go too, as far as they are empty. A foreign entry is never restored: Restore removes
// what the path holds. When from is foreign, the path must hold nothing.
//
// It may be done again after a kill: what is half done is then done, or was not begun.
// A file that may not be written to is replaced none the less, as its mode is part of
// what is put back.
func (b *Restorer) Restore(ctx context.Context, rel string, from, to api.FileVersion, data func() ([]byte, error)) (RestoreResult, error) {
	if !restorable(rel) {
		return 0, fmt.Errorf("put back %s: %w", filepath.ToSlash(rel), ErrPath)
	}
	var got RestoreResult
	err := b.RestoreAll(ctx, []RestoreStep{{rel, from, to, data}}, func(_ int, put RestoreResult) { got = put })
	return got, err
}

// EntryAt returns what a path, relative to the root, holds. It follows no link.
func (w *Workspace) EntryAt(ctx context.Context, rel string) (api.FileVersion, error) {
	if !restorable(rel) {
		return api.FileVersion{}, fmt.Errorf("look at %q: %w", rel, ErrPath)
	}
	t, err := w.entryAt(ctx, rel)
	if err != nil {
		return api.FileVersion{}, fmt.Errorf("look at %s: %w", filepath.ToSlash(rel), err)
	}
	return t, nil
}
