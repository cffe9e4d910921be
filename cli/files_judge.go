package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// authors says who made the changes that the model was told of, by commit and path:
// the journal keeps it in the event, and nothing else needs it.
func authors(ctx context.Context, v *store.View, records []task.FileRecord) (map[string]string, error) {
	out := map[string]string{}
	var from, to uint64
	for _, r := range records {
		if r.Source == "user_edited" && r.Seq > 0 {
			if from == 0 {
				from = r.Seq
			}
			from, to = min(from, r.Seq), max(to, r.Seq)
		}
	}
	if to == 0 || v.Log == nil {
		return out, nil
	}
	for c, err := range v.Log.Read(ctx, from) {
		var lost *journal.DamageError
		if errors.As(err, &lost) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, err)
		}
		if c.Seq > to {
			break
		}
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil {
				if f, ok := e.(task.FileChanged); ok && f.By != "" {
					out[f.Source+recordKey(c.Seq, f.Path)] = f.By
				}
			}
		}
	}
	return out, nil
}

func recordKey(seq uint64, path string) string { return fmt.Sprint(seq, " ", path) }

// judged says how a file is now, against what the model last saw of it.
func judged(ctx context.Context, w *workspace.Workspace, k *task.Known) (knownFile, error) {
	seen := k.Seen
	if seen.Path == "" {
		seen = k.Last
	}
	item := knownFile{Path: k.Path, Source: k.Source, ReadAt: date(k.Read), EditedAt: date(k.Edit), UserAt: date(k.UserEdit), TS: k.Last.RecordedAt, Inferred: []string{}}
	if seen.Hash != "" {
		item.Hash, item.Size = &seen.Hash, &seen.Size
	}
	name := k.Path
	if seen.Seq == 0 {
		name = strings.ReplaceAll(name, `\ `, " ") // Roo stores a mention as it was typed
	}
	p, err := w.Resolve(name)
	if err != nil {
		item.State = string(workspace.Missing) // no file can have that name
		return item, nil                       //nolint:nilerr // it is told as the file's state
	}
	if !seen.Judgeable() || seen.Seq == 0 {
		state, at := w.Dated(p, max(k.Read, k.Edit))
		item.State, item.Inferred = string(state), []string{"state"}
		if at.Path != "" {
			item.NowSize = &at.Size
		}
		return item, nil
	}
	look := workspace.Look{At: seen.RecordedAt, Was: workspace.FileState{Path: k.Path, Hash: seen.Hash, Size: seen.Size, MTime: seen.MTime, CTime: seen.CTime, Inode: seen.Inode, Device: seen.Device}}
	s, err := w.Judge(ctx, p, look)
	if err != nil {
		if ctx.Err() != nil {
			return item, err
		}
		item.State, item.Inferred = string(workspace.Changed), []string{"state"} // it cannot be read any more
		return item, nil
	}
	item.State = string(s.Verdict)
	if s.State.Hash != "" {
		item.NowHash, item.NowSize = &s.State.Hash, &s.State.Size
	}
	if seen.Hash == "" && !seen.Gone() {
		item.Inferred = []string{"state"}
	}
	return item, nil
}

// author is who made the change that a record is of; nil for a read.
func author(by map[string]string, r task.FileRecord) *string {
	if r.Source != "roo_edited" && r.Source != "user_edited" {
		return nil
	}
	who, ok := by[r.Source+recordKey(r.Seq, r.Path)]
	if !ok {
		who = map[string]string{"roo_edited": "agent", "user_edited": "other"}[r.Source]
	}
	return &who
}

func date(ms int64) *string {
	if ms <= 0 {
		return nil
	}
	text := stamp(ms)
	return &text
}

func recordsFor(records []task.FileRecord, path string, by map[string]string) []fileRecord {
	out := []fileRecord{}
	for _, r := range records {
		if r.Path != path {
			continue
		}
		k := fileRecord{Seq: r.Seq, At: date(r.RecordedAt), Source: r.Source, By: author(by, r)}
		if r.Hash != "" {
			k.Hash, k.Size = &r.Hash, &r.Size
		}
		out = append(out, k)
	}
	return out
}
