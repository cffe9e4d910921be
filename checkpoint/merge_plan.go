package checkpoint

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/workspace"
)

// Resolve finds out what a plan alone cannot know: which contents still exist, and the results of merges. A file whose
// merge fails is kept, with the reason. With keep the merged contents are durable when it returns, as an intent needs;
// without, for a preview, nothing is written.
func (k *Keeper) Resolve(ctx context.Context, p Plan, keep bool) (Plan, error) {
	out := Plan{To: p.To, Rule: p.Rule}
	var b *content.Batch // of what merges give; a preview makes none, as even that writes
	if keep {
		var err error
		if b, err = k.begin(ctx); err != nil {
			return out, fmt.Errorf("merge files: %w", err)
		}
		defer b.Discard()
	}
	for _, i := range p.Items {
		if i.Act == ActMerge {
			var err error
			if i, err = k.mergeItem(ctx, i, b); err != nil {
				return out, fmt.Errorf("merge %s: %w", i.Path, err)
			}
			if i.Act == ActMerge && i.Target.Same(i.Now) && i.Doubt {
				i.Act, i.Why = ActKeep, i.whose()
			} else if i.Act == ActMerge && i.Target.Same(i.Now) {
				continue // everything that the task did to it was undone already
			}
		}
		if i.Act.Changes() && present(i.Target) && i.Target.Hash != i.Now.Hash && i.Target.Blob != "" &&
			i.Act != ActMerge && !k.has(i.Target) {
			i.Act, i.Why = ActLost, "its content is not in the store of this workspace any more"
		}
		out.Items = append(out.Items, i)
	}
	out.behind()
	if keep {
		if err := b.Close(); err != nil {
			return out, fmt.Errorf("keep merged files: %w", err)
		}
	}
	return out, nil
}

// mergeItem removes the task's steps from what is at a path now, newest first. Without a batch the result is not kept.
func (k *Keeper) mergeItem(ctx context.Context, i Item, b *content.Batch) (Item, error) {
	kept := func(why string) (Item, error) {
		i.Act, i.Why = ActKeep, why
		return i, nil
	}
	at := i.Now
	var text []byte // of at, once it is none that the store has
	for _, s := range i.Undo {
		switch {
		case at.Same(s.To):
			at, text = s.From, nil
			continue
		case at.Same(s.From):
			continue
		case at.Kind != api.KindFile || s.From.Kind != api.KindFile || s.To.Kind != api.KindFile:
			return kept("it was changed by others since, and not only its text")
		}
		mode, ok := mergeMode(at.Mode, s)
		if !ok {
			return kept("others gave it another mode than the task since")
		}
		base, why, err := k.side(ctx, i.Path, s.To, maxMerge, false)
		if err == nil && why == "" && text == nil {
			text, why, err = k.side(ctx, i.Path, at, maxMerge, at.Same(i.Now))
		}
		var old []byte
		if err == nil && why == "" {
			old, why, err = k.side(ctx, i.Path, s.From, maxMerge, false)
		}
		if err != nil {
			return i, err
		}
		if why != "" {
			return kept("it cannot be merged: " + why)
		}
		data, ok := MergeText(base, text, old)
		if !ok {
			return kept("others changed the same lines since")
		}
		text = append([]byte{}, data...)
		at = api.FileVersion{Kind: api.KindFile, Mode: mode, Size: int64(len(text)), Hash: workspace.HashOf(text)}
	}
	i.Target = at
	if text != nil && at.Blob == "" && at.Hash != i.Now.Hash && b != nil {
		id, err := b.Add(text)
		if err != nil {
			return i, err
		}
		i.Target.Blob = string(id)
	}
	if text == nil {
		return k.atHand(i), nil
	}
	return i, nil
}

// mergeMode takes a step's change of the mode out of a mode.
func mergeMode(now uint32, s Step) (uint32, bool) {
	switch {
	case s.From.Mode == s.To.Mode, now == s.From.Mode:
		return now, true
	case now == s.To.Mode:
		return s.From.Mode, true
	}
	return now, false
}

// atHand: a merge whose result needed no merging of text must be kept like any other.
func (k *Keeper) atHand(i Item) Item {
	i = i.lostUnlessKept()
	if i.Act == ActMerge && present(i.Target) && i.Target.Hash != i.Now.Hash && !k.has(i.Target) {
		i.Act, i.Why = ActLost, "its content is not in the store of this workspace any more"
	}
	return i
}
