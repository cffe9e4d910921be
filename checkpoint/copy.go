package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-dev/roost/content"
)

// Copy copies the contents of owners to another place, and returns how many it wrote. wanted selects the owners (see
// OwnerOf). failed gets what could not be copied: a workspace's name, an owner or "" for all of them, and the reason.
// Surveys stay where the workspace is.
func Copy(ctx context.Context, from, to Place, wanted func(owner string) bool, failed func(name, owner string, err error)) (written int, err error) {
	list, err := from.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, name := range list {
		if err := ctx.Err(); err != nil {
			return written, err
		}
		n, err := copyOne(ctx, from, to, name, wanted, func(owner string, err error) { failed(name, owner, err) })
		if written += n; err != nil {
			failed(name, "", err)
		}
	}
	return written, nil
}

// copyOne copies the contents of one workspace.
func copyOne(ctx context.Context, from, to Place, name string, wanted func(string) bool, failed func(string, error)) (written int, err error) {
	source, err := from.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if source.old != nil {
		return 0, errors.New("an earlier version of Roost kept them; a new checkpoint in the workspace carries them over")
	}
	owners, err := source.store.Names(ctx)
	if err != nil {
		return 0, err
	}
	maps.DeleteFunc(owners, func(owner string, _ content.Named) bool { return !wanted(owner) })
	if len(owners) == 0 {
		return 0, nil
	}
	target, err := to.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := target.prepare(ctx, true); err != nil {
		return 0, fmt.Errorf("prepare the copy: %w", err)
	}
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		n, err := content.Copy(ctx, source.store, target.store, owner)
		if written += n; err != nil {
			failed(owner, err)
		}
	}
	target.store.Settle()
	return written, nil
}
