package importer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// PathMap maps a folder of another machine to one on this machine.
type PathMap struct{ Old, New string }

// mapPath maps a path of another machine to this one; false when no mapping covers it. The longest mapping wins, and
// only whole names match: /w does not cover /work.
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
			to = m.New // the root of the file system
			rest = strings.TrimLeft(rest, `/\`)
		}
		if windowsStyle(path) != windowsStyle(m.New) {
			from, with := "/", `\`
			if windowsStyle(path) {
				from, with = with, from
			}
			rest = strings.ReplaceAll(rest, from, with)
		}
		best, length = to+rest, len(old)
	}
	return best, length >= 0 && path != "" && best != path
}

// below is the part of a path below a folder.
func below(path, dir string) (string, bool) {
	if len(path) < len(dir) || path[:len(dir)] != dir && !(windowsStyle(dir) && strings.EqualFold(path[:len(dir)], dir)) {
		return "", false
	}
	rest := path[len(dir):]
	return rest, rest == "" || rest[0] == '/' || rest[0] == '\\'
}

// windowsStyle reports whether a path is a Windows path: C:\x or \\server\x.
func windowsStyle(path string) bool {
	drive := len(path) >= 2 && path[1] == ':' && (path[0]|0x20) >= 'a' && (path[0]|0x20) <= 'z'
	return drive || strings.HasPrefix(path, `\\`)
}

// maxItem bounds the history item that an import changes, in bytes: real ones have a few kilobytes.
const maxItem = 16 << 20

// mapItem is the history item of the copy, and a description of what differs from the original. It is the only file
// that an import changes: its id, when the task gets another one than its folder's name, and its workspace. Every other
// byte stays.
func (im *importer) mapItem(raw []byte, item *copied) ([]byte, string) {
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return raw, ""
	}
	var what []string
	if id, ok := esjson.GetString(raw, "id"); ok && item.ID != item.Name && id != item.ID {
		raw = esjson.Set(raw, "id", esjson.Quote(nil, item.ID))
		what = append(what, "id")
	}
	for _, key := range []string{"workspace", "cwdOnTaskInitialization"} { // Cline uses the second
		old, _ := esjson.GetString(raw, key)
		if mapped, ok := mapPath(im.opt.Map, old); ok {
			raw = esjson.Set(raw, key, esjson.Quote(nil, mapped))
			what = append(what, fmt.Sprintf("%s: %s, not %s", key, mapped, old))
		}
	}
	return raw, strings.Join(what, "; ")
}

// findChanges determines how the copy will differ. It reads the original, so a dry run reports the same. A task
// without an item gets its row of the storage's index, because that index is not imported.
func (im *importer) findChanges(ctx context.Context, from fileSet, tree taskTree, item *copied) error {
	item.Differs, item.Notes, item.historyItem = nil, nil, nil
	if tree.has(journalName) {
		return nil // the item is derived from that
	}
	i := slices.IndexFunc(tree.Files, func(f treeFile) bool { return f.Path == roofmt.ItemName })
	if i < 0 {
		row, of := im.store.IndexRow(item.From), "the index of its storage"
		if tree.hasTranscript() {
			if folder, err := roofmt.Read(ctx, item.From); err == nil { // it fails for an archive, which has no manifest
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
		item.historyItem, item.Notes = mapped, []string{note}
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
		item.historyItem, item.Differs = mapped, []api.FileNote{{File: roofmt.ItemName, What: what}}
	}
	return nil
}

// mapInferredWorkspace sets the workspace of a copy whose item names none, when its messages name one that the mapping
// covers: the user vouches for it with the mapping. A copy without an item gets one derived from its messages.
func (im *importer) mapInferredWorkspace(ctx context.Context, stage string, item *copied) error {
	if len(im.opt.Map) == 0 || item.historyItem != nil {
		return nil
	}
	ref := im.store.OwnRef(item.ID)
	ref.Dir, ref.Log = stage, stage
	v, err := im.store.Read(ctx, ref)
	if err != nil {
		return nil //nolint:nilerr // a task that cannot be read is copied as it is
	}
	defer v.Close()
	mapped, ok := mapPath(im.opt.Map, v.Summary.Workspace)
	if !ok || !slices.Contains(v.Summary.Inferred, "workspace") {
		return nil
	}
	what := fmt.Sprintf("workspace: %s, as its messages name %s", mapped, v.Summary.Workspace)
	raw := v.Folder.Item
	if len(raw) > 0 {
		item.Differs = append(item.Differs, api.FileNote{File: roofmt.ItemName, What: what})
	} else {
		if raw, err = v.RenderItem(im.store.Now(), item.Bytes); err != nil {
			return err
		}
		item.Notes = append(item.Notes, roofmt.ItemName+" is made from its messages, with the "+what)
	}
	item.historyItem = esjson.Set(raw, "workspace", esjson.Quote(nil, mapped))
	return nil
}
