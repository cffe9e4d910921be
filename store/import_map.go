package store

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// PathMap says where a folder of another machine lies on this one.
type PathMap struct{ Old, New string }

// mapPath gives the place of a path here; false when no mapping covers it. The
// longest one decides, and only whole names match: /w is no part of /work.
func mapPath(list []PathMap, path string) (string, bool) {
	best, length := "", -1
	for _, m := range list {
		old := strings.TrimRight(m.Old, `/\`)
		rest, ok := below(path, old)
		if !ok || len(old) <= length {
			continue
		}
		to := strings.TrimRight(m.New, `/\`)
		if to == "" {
			to = m.New // the root of everything
			rest = strings.TrimLeft(rest, `/\`)
		}
		if foreignStyle(path) != foreignStyle(m.New) {
			from, with := "/", `\`
			if foreignStyle(path) {
				from, with = with, from
			}
			rest = strings.ReplaceAll(rest, from, with)
		}
		best, length = to+rest, len(old)
	}
	return best, length >= 0 && path != "" && best != path
}

// below gives what of a path stands behind a folder.
func below(path, dir string) (string, bool) {
	if len(path) < len(dir) || path[:len(dir)] != dir && !(foreignStyle(dir) && strings.EqualFold(path[:len(dir)], dir)) {
		return "", false
	}
	rest := path[len(dir):]
	return rest, rest == "" || rest[0] == '/' || rest[0] == '\\'
}

// foreignStyle reports whether a path is one of Windows: C:\x or \\server\x.
func foreignStyle(path string) bool {
	drive := len(path) >= 2 && path[1] == ':' && (path[0]|0x20) >= 'a' && (path[0]|0x20) <= 'z'
	return drive || strings.HasPrefix(path, `\\`)
}

// maxItem bounds the history item that is changed: real ones take a few kilobytes.
const maxItem = 16 << 20

// mapItem gives the history item that a task has here, and what is changed in it.
// It is the only file that an import changes: its id, when the task got another one
// than its folder's, and its workspace. Every other byte stays.
func (im *importer) mapItem(raw []byte, item *ImportItem) ([]byte, string) {
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return raw, ""
	}
	var what []string
	if id, ok := esjson.GetString(raw, "id"); ok && item.ID != item.Name && id != item.ID {
		raw = esjson.Set(raw, "id", esjson.Quote(nil, item.ID))
		what = append(what, "id")
	}
	for _, key := range []string{"workspace", "cwdOnTaskInitialization"} { // the second is Cline's word for it
		old, _ := esjson.GetString(raw, key)
		if mapped, ok := mapPath(im.opt.Map, old); ok {
			raw = esjson.Set(raw, key, esjson.Quote(nil, mapped))
			what = append(what, fmt.Sprintf("%s: %s, not %s", key, mapped, old))
		}
	}
	return raw, strings.Join(what, "; ")
}

// changed finds out what the copy will differ in. It is the original that is looked
// at, so that a dry run says the same. A task without an item gets the row that its
// storage's index has of it: that index stays behind.
func (im *importer) changed(ctx context.Context, from source, tree taskTree, item *ImportItem) error {
	item.Differs, item.Notes, item.history = nil, nil, nil
	if tree.has("journal.jsonl") {
		return nil // the item is derived from that
	}
	i := slices.IndexFunc(tree.Files, func(f treeFile) bool { return f.Path == roofmt.ItemName })
	if i < 0 {
		row, of := im.store.rows.row(item.From), "the index of its storage"
		if tree.session() {
			if folder, err := roofmt.Read(ctx, item.From); err == nil { // not of an archive: that has the manifest
				row, of = roofmt.MergeRow(folder.Row, row), "its manifest, its messages and "+of
				if err := folder.Close(); err != nil {
					return err
				}
			}
		}
		if len(row) == 0 {
			return nil
		}
		mapped, what := im.mapItem(slices.Clone(row), item)
		note := roofmt.ItemName + " is made from " + of
		if what != "" {
			note += ", with another " + what
		}
		item.history, item.Notes = mapped, []string{note}
		return nil
	}
	if tree.Files[i].Size > maxItem {
		return nil
	}
	in, err := from.open(roofmt.ItemName)
	if err != nil {
		return err
	}
	defer in.Close()
	raw, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if mapped, what := im.mapItem(raw, item); what != "" {
		item.history, item.Differs = mapped, []ImportNote{{roofmt.ItemName, what}}
	}
	return nil
}

// mapInferred gives a workspace to a copy whose item names none, when its messages name one that
// the mapping covers: the mapping is the user's word for it. A copy without an item gets the one
// that is derived from its messages.
func (im *importer) mapInferred(ctx context.Context, stage string, item *ImportItem) error {
	if len(im.opt.Map) == 0 || item.history != nil {
		return nil
	}
	ref := im.store.OwnRef(item.ID)
	ref.Dir, ref.Log = stage, stage
	v, err := im.store.Read(ctx, ref)
	if err != nil {
		return nil //nolint:nilerr // what cannot be read is copied as it is
	}
	defer v.Close()
	mapped, ok := mapPath(im.opt.Map, v.Summary.Workspace)
	if !ok || !slices.Contains(v.Summary.Inferred, "workspace") {
		return nil
	}
	what := fmt.Sprintf("workspace: %s, as its messages name %s", mapped, v.Summary.Workspace)
	raw := v.Folder.Item
	if len(raw) > 0 {
		item.Differs = append(item.Differs, ImportNote{roofmt.ItemName, what})
	} else {
		img, err := imageOf(v.State, im.store.opt.Now())
		if err != nil {
			return err
		}
		raw = img.renderItem(item.Bytes)
		item.Notes = append(item.Notes, roofmt.ItemName+" is made from its messages, with the "+what)
	}
	item.history = esjson.Set(raw, "workspace", esjson.Quote(nil, mapped))
	return nil
}
