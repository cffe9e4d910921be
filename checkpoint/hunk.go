package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// ErrShownChanged: a difference, or a hunk of it, has changed since it was shown to the caller.
var ErrShownChanged = errors.New("the difference is not the one that was shown")

// hashShown returns a hash of what a person sees of a difference: the path, both versions and the text.
func hashShown(d api.FileDiff, text string) string {
	side := func(v api.FileVersion) string { return fmt.Sprintf("%s %o %s", v.Kind, v.Mode, v.Hash) }
	sum := sha256.Sum256([]byte(strings.Join([]string{d.Path, side(d.From), side(d.To), text}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// hunksOf finds the hunks in the patch of a file. Its lines all begin with one of " +-\", so that a line that begins
// with "@@ " is the head of a hunk. A link that became a file, or the reverse, has no hunks: its patch has two parts.
func hunksOf(d api.FileDiff, patch string) (out []api.Hunk) {
	if d.Why != "" || d.From.Kind == api.KindLink || d.To.Kind == api.KindLink {
		return nil
	}
	_, rest, any := strings.Cut(patch, "\n@@ ")
	for any {
		var one string
		one, rest, any = strings.Cut(rest, "\n@@ ")
		var h api.Hunk
		var old, made string
		if _, err := fmt.Sscanf(one, "-%s +%s @@", &old, &made); err != nil {
			return nil
		}
		h.Number = len(out) + 1
		h.From, h.FromLines = rangeOf(old)
		h.To, h.ToLines = rangeOf(made)
		h.Hash = hashShown(d, strings.TrimSuffix(one, "\n"))
		out = append(out, h)
	}
	return out
}

// rangeOf reads the lines of one side of a hunk: "3,7", or "3" for a single line.
func rangeOf(text string) (start, count int) {
	first, lines, both := strings.Cut(text, ",")
	start, _ = strconv.Atoi(first) // the patch was made here
	if count = 1; both {
		count, _ = strconv.Atoi(lines)
	}
	return start, count
}

// place returns where lines of a hunk begin, counted from 0. For a side without lines, the hunk names the line before
// it.
func place(start, count int) int {
	if count == 0 {
		return start
	}
	return start - 1
}

// Shown is a difference of one file that a person looked at.
type Shown struct {
	Path     string
	Older    int // the checkpoint of the older side; 0 = before any change
	Newer    int // the checkpoint of the newer side; -1 = what is on the disk
	Hunk     int // from 1; 0 = all of the file
	Hash     string
	From, To api.FileVersion
}

// PlanShown plans to undo a difference, or one hunk of it. now is what the path holds. With keep, contents that the
// plan needs are durable when it returns; without, for a preview, nothing is written.
//
// A file that does not hold the newer side is a conflict, and so is, for a whole file, a change of others that the
// difference contains: the rule decides. A hunk may be a change of others, because the user chose it by its lines.
// Merge undoes only those lines, wherever they are by now.
//
// The error is ErrShownChanged when the difference does not have the hash.
func (k *Keeper) PlanShown(ctx context.Context, list []task.CheckpointSaved, s Shown, now api.FileVersion, rule Rule, keep bool) (p Plan, err error) {
	d := api.FileDiff{Path: s.Path, From: s.From, To: s.To, Change: changeOf(s.From, s.To)}
	room := 16 << 20
	if err := k.fill(ctx, &d, DiffOptions{MaxFile: maxMerge, Now: s.Newer < 0}, &room); err != nil {
		return p, fmt.Errorf("compare %s: %w", s.Path, err)
	}
	if s.Hunk == 0 {
		if s.Hash != d.Hash {
			return p, ErrShownChanged
		}
		if !now.Same(s.From) {
			p.Items = append(p.Items, wholeShown(list, s, now).judged(rule))
		}
		return k.Resolve(ctx, p, keep)
	}
	if s.Hunk < 1 || s.Hunk > len(d.Hunks) || s.Hash != d.Hunks[s.Hunk-1].Hash {
		return p, ErrShownChanged
	}
	item, err := k.hunkItem(ctx, s, d.Hunks[s.Hunk-1], now, rule)
	if err != nil {
		return p, fmt.Errorf("take back a part of %s: %w", s.Path, err)
	}
	p.Items = append(p.Items, item)
	return k.Resolve(ctx, p, keep)
}

// wholeShown plans to give a file the older side of a difference.
func wholeShown(list []task.CheckpointSaved, s Shown, now api.FileVersion) Item {
	i := Item{Path: s.Path, Now: now, Target: s.From, Act: ActRestore, Conflict: !now.Same(s.To)}
	for _, step := range slices.Backward(Transitions(list)[s.Path]) {
		if step.Checkpoint > s.Older && (s.Newer < 0 || step.Checkpoint <= s.Newer) {
			i.add(step)
		}
	}
	if n := len(list); s.Newer < 0 && n > 0 && !now.Same(StateAt(list, list[n-1].Number)[s.Path]) {
		i.Conflict, i.Doubt = true, false
	}
	return i
}

// hunkItem plans to restore the lines of one hunk.
func (k *Keeper) hunkItem(ctx context.Context, s Shown, h api.Hunk, now api.FileVersion, rule Rule) (Item, error) {
	i := Item{Path: s.Path, Now: now, Target: s.From, Act: ActRestore, Conflict: !now.Same(s.To)}
	kept := func(why string) (Item, error) {
		i.Act, i.Why = ActKeep, why
		return i, nil
	}
	switch {
	case !plain(s.Path):
		return kept("Roost never changes such a path")
	case i.Conflict && rule != Merge:
		return kept("it does not hold what the difference shows")
	case i.Conflict && (now.Kind != api.KindFile || s.From.Kind != api.KindFile || s.To.Kind != api.KindFile):
		return kept("more than its text has changed since")
	case s.From.Kind != api.KindFile || s.To.Kind != api.KindFile: // one hunk is all of the file
		return i.lostUnlessKept(), nil
	}
	old, why, err := k.side(ctx, s.Path, s.From, maxMerge, false)
	made, whyNew, errNew := k.side(ctx, s.Path, s.To, maxMerge, s.Newer < 0)
	if err = errors.Join(err, errNew); err != nil {
		return i, err
	}
	if why = cmp.Or(why, whyNew); why != "" {
		return kept(why)
	}
	text := without(old, made, h)
	if i.Conflict {
		is, why, err := k.side(ctx, s.Path, now, maxMerge, true)
		if err != nil {
			return i, err
		}
		if why != "" {
			return kept("it cannot be merged: " + why)
		}
		merged, ok := MergeText(made, is, text)
		if !ok {
			return kept("the same lines were changed since")
		}
		i.Act, text = ActMerge, merged
	}
	i.Target = api.FileVersion{Kind: api.KindFile, Mode: now.Mode, Size: int64(len(text)), Hash: workspace.HashOf(text)}
	if i.Target.Same(now) {
		return kept("these lines are already restored")
	}
	i.text = text
	return i, nil
}

// without returns the newer text of a difference, with the lines of one hunk as in the older text.
func without(old, made []byte, h api.Hunk) []byte {
	x, y := splitLines(old), splitLines(made)
	from, to := place(h.From, h.FromLines), place(h.To, h.ToLines)
	return bytes.Join(slices.Concat(y[:to], x[from:from+h.FromLines], y[to+h.ToLines:]), nil)
}

// Preview returns the difference that an item of a plan would make on the disk: its patch, bounded by room in bytes,
// or the reason why there is none.
func (k *Keeper) Preview(ctx context.Context, i Item, room *int) (patch, why string, err error) {
	d := api.FileDiff{Path: i.Path, From: i.Now, To: i.Target, Change: changeOf(i.Now, i.Target)}
	err = k.fill(ctx, &d, DiffOptions{MaxFile: maxMerge, before: true, made: i.text}, room)
	return d.Patch, d.Why, api.Failed(err, "compare %s", i.Path)
}
