package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// Folder writes the task's four files into dir, a folder that Roo can open. It replaces an existing file by one rename;
// other files in dir stay.
//
// It copies a whole file byte for byte. Of a damaged file it writes the complete elements, and keeps the original as
// NAME.damaged. While the task's journal is ahead of its files, the histories come from the journal.
func Folder(ctx context.Context, dir string, v *store.View) (Report, error) {
	var r Report
	root, err := os.OpenRoot(roofmt.FolderOf(v.Ref.Dir))
	if errors.Is(err, fs.ErrNotExist) && v.Log != nil {
		root, err = nil, nil // its editor deleted it; the journal has everything
	}
	if err != nil {
		return r, trouble(v, "a Roo folder", err)
	}
	if root != nil {
		defer root.Close()
	}
	docs := v.Folder
	if docs == nil && root != nil { // the files are as we wrote them, and may be behind the journal
		if docs, err = roofmt.Read(ctx, v.Ref.Dir); err != nil {
			return r, trouble(v, "a Roo folder", err)
		}
		defer docs.Close()
	}
	if docs == nil {
		docs = &roofmt.Folder{}
	}
	behind := false
	var files []roofmt.Replacement
	from := originals{root: root}
	defer from.close()
	for _, h := range []struct {
		doc         *roofmt.Document
		name, short string
		list        []*task.Message
	}{{docs.UI, roofmt.UIName, "ui", v.State.UI()}, {docs.API, roofmt.APIName, "api", v.State.API()}} {
		if h.doc != nil && h.doc.Intact() && (v.Log == nil || current(ctx, h.doc, v, h.list)) {
			files = append(files, roofmt.Replacement{Name: h.name, Write: func(w io.Writer) error {
				_, err := h.doc.WriteTo(w)
				return err
			}})
			continue
		}
		behind = behind || v.Log != nil
		parts, err := history(ctx, v, &from, h.name, h.short, h.list, &r)
		if err != nil {
			return r, trouble(v, "a Roo folder", err)
		}
		files = append(files, parts...)
	}
	for _, name := range []string{roofmt.ItemName, roofmt.MetadataName} {
		there, copied, err := from.copyOf(name)
		if err != nil {
			return r, trouble(v, "a Roo folder", err)
		}
		if there && !(behind && name == roofmt.ItemName) {
			files = append(files, copied)
		} else if made := made(ctx, v, name, docs.Item); made != nil {
			files = append(files, roofmt.Replacement{Name: name, Bytes: made})
		}
	}
	if err := ctx.Err(); err != nil { // not everything was read
		return r, trouble(v, "a Roo folder", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return r, trouble(v, "a Roo folder", err)
	}
	if len(files) == 0 {
		return r, trouble(v, "a Roo folder", os.MkdirAll(dir, 0o700))
	}
	return r, trouble(v, "a Roo folder", roofmt.Replace(ctx, dir, files, roofmt.Options{Create: true}))
}

// current reports whether a file holds exactly the history in the journal.
func current(ctx context.Context, doc *roofmt.Document, v *store.View, list []*task.Message) bool {
	if doc.Len() != len(list) {
		return false
	}
	var r Report
	n := 0
	for e := range elements(ctx, v, "", list, &r) {
		there, err := doc.Raw(n)
		if n++; err != nil || !esjson.Equal(there, e.Raw) {
			return false
		}
	}
	return n == len(list)
}

// history is the file of one history, made from its elements, and what is damaged of it.
func history(ctx context.Context, v *store.View, from *originals, name, short string, list []*task.Message,
	r *Report) ([]roofmt.Replacement, error) {
	var out []roofmt.Replacement
	if len(list) > 0 || v.Log != nil {
		out = append(out, roofmt.Replacement{Name: name, Write: func(w io.Writer) error {
			return roofmt.WriteArray(w, func(yield func(roofmt.Element, error) bool) {
				for e := range elements(ctx, v, short, list, r) {
					if !yield(roofmt.Element{Raw: e.Raw, Made: !e.Message.Foreign}, nil) {
						return
					}
				}
				if err := ctx.Err(); err != nil {
					yield(roofmt.Element{}, err)
				}
			})
		}})
	}
	if v.Log != nil {
		return out, nil
	}
	there, kept, err := from.copyOf(name)
	if there {
		kept = held(v.Folder, kept)
		kept.Name += ".damaged"
		out = append(out, kept)
	}
	return out, err
}

// made is a small file of a task with a journal, for when the file is missing or behind. Members that another program
// put into the history item stay. It holds all rows in memory: what a row adds to the item depends on the others.
func made(ctx context.Context, v *store.View, name string, base []byte) []byte {
	if v.Log == nil {
		return nil
	}
	if name == roofmt.MetadataName {
		return task.MetadataJSON(v.State.Files)
	}
	var rows [][]byte
	var r Report // the histories have reported what is unreadable
	for e := range elements(ctx, v, "ui", v.State.UI(), &r) {
		rows = append(rows, e.Raw)
	}
	row := projection.HistoryRow(v.State)
	row.ID, row.Now, row.Size = v.Ref.ID, v.Summary.TS, v.Summary.Size
	item := usage.HistoryItem(rows, row)
	if len(base) == 0 {
		return item
	}
	return projection.OverItem(base, item)
}

// held copies a history from the open file that was read, and not from the file that has its name by now: a task may
// change during its export.
func held(docs *roofmt.Folder, copied roofmt.Replacement) roofmt.Replacement {
	for _, doc := range []*roofmt.Document{docs.UI, docs.API} {
		if doc != nil && doc.Source == copied.Name {
			copied.Write = func(w io.Writer) error {
				_, err := doc.WriteTo(w)
				return err
			}
		}
	}
	return copied
}

// originals are the files of a task that are copied unchanged. Each is opened when it is found: its name may be gone
// when it is copied.
type originals struct {
	root *os.Root
	open []*os.File
}

func (o *originals) close() {
	for _, f := range o.open {
		_ = f.Close() // opened for reading only
	}
}

// copyOf copies a regular file, if there is one.
func (o *originals) copyOf(name string) (there bool, copied roofmt.Replacement, err error) {
	if o.root == nil {
		return false, copied, nil
	}
	if info, err := o.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return false, copied, nil
	}
	f, err := roofmt.OpenFile(o.root.Name(), name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, roofmt.ErrNotRegular) {
		return false, copied, nil
	}
	if err != nil {
		return false, copied, fmt.Errorf("copy %s: %w", name, err)
	}
	o.open = append(o.open, f)
	return true, roofmt.Replacement{Name: name, Write: func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(f, 0, math.MaxInt64))
		return err
	}}, nil
}
