// Package export writes tasks to other forms: Markdown as Roo writes it, one
// self-contained HTML page, JSON, a folder that Roo can open, and a portable
// archive with checksums.
//
// It changes nothing of a task, and streams every form: it reads a history some messages at a time. It leaves out what
// is unreadable, names it in its report (api.Exported), and writes the rest. The forms for reading (Markdown, HTML, JSON)
// mask secrets when the options have a redactor; the folder and the archive are exact.
//
// Everything that a model, a tool or another program wrote is untrusted. A page shows it as text: no markup of it
// survives, the page loads nothing, and its policy forbids scripts.
package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// Folder writes the task's four files into dir, a folder that Roo can open. It replaces an existing file by one rename;
// other files in dir stay.
//
// It copies a whole file byte for byte. Of a damaged file it writes the complete elements, and keeps the original as
// NAME.damaged. While the task's journal is ahead of its files, the histories come from the journal.
func Folder(ctx context.Context, dir string, v *store.View) (api.Exported, error) {
	var r api.Exported
	root, err := inputfile.OpenDir(roofmt.FolderOf(v.Ref.Dir))
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
		if h.doc != nil && h.doc.Intact() && (v.Log == nil || current(ctx, h.doc, v, h.short, h.list)) {
			files = append(files, copyOf(h.name, h.doc))
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
		} else if made := made(ctx, v, name, docs); made != nil {
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

// current reports whether a file holds exactly the history that the journal has.
func current(ctx context.Context, doc *roofmt.Document, v *store.View, short string, list []*task.Message) bool {
	var r api.Exported
	n := 0
	for e := range projected(ctx, v, short, list, &r) {
		if n == doc.Len() {
			return false
		}
		there, err := doc.Raw(n)
		if n++; err != nil || !esjson.Equal(there, e.Raw) {
			return false
		}
	}
	return n == doc.Len() && len(r.Unread) == 0
}

// projected yields the elements of a history's file. While the task waits for a subtask, the file of the model's history
// ends with a turn that the history lacks. The turn holds the results so far. Without them Roo would write for the
// model that those calls did not run.
func projected(ctx context.Context, v *store.View, short string, list []*task.Message, r *api.Exported) iter.Seq[roofmt.Element] {
	return func(yield func(roofmt.Element) bool) {
		for e := range elements(ctx, v, short, list, 0, r) {
			if !yield(roofmt.Element{Raw: e.Raw, Made: !e.Message.Foreign}) {
				return
			}
		}
		switch waiting, err := v.State.ResultsSoFar(); {
		case short == "ui" || ctx.Err() != nil:
		case err != nil:
			r.Unread = append(r.Unread, api.Unread{History: short, Number: len(list) + 1, Problem: err.Error()})
		case waiting != nil:
			yield(roofmt.Element{Raw: waiting, Made: true})
		}
	}
}

// history returns the file of one history, built from its elements, and what is damaged in it.
func history(ctx context.Context, v *store.View, from *originals, name, short string, list []*task.Message,
	r *api.Exported) ([]roofmt.Replacement, error) {
	var out []roofmt.Replacement
	if len(list) > 0 || v.Log != nil {
		out = append(out, roofmt.Replacement{Name: name, Write: func(w io.Writer) error {
			return roofmt.WriteArray(w, func(yield func(roofmt.Element, error) bool) {
				for e := range projected(ctx, v, short, list, r) {
					if !yield(e, nil) {
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
		for _, doc := range []*roofmt.Document{v.Folder.UI, v.Folder.API} {
			if doc != nil && doc.Source == name { // from the open file that was read: the task may change meanwhile
				kept = copyOf(name, doc)
			}
		}
		kept.Name += ".damaged"
		out = append(out, kept)
	}
	return out, err
}

// made builds a small file that is missing or behind the task's journal. Without a history item Roo never lists the
// folder; that of a task without a journal is its entry in an index. Members that another program put into the item stay.
// made holds all rows in memory, since a row's part of the item depends on the others.
func made(ctx context.Context, v *store.View, name string, docs *roofmt.Folder) []byte {
	switch {
	case name == roofmt.MetadataName && v.Log == nil:
		return nil
	case name == roofmt.MetadataName:
		return task.MetadataJSON(v.State.Files)
	case v.Log == nil && len(docs.Row) > 0:
		return docs.Row
	}
	var rows [][]byte
	var r api.Exported // discarded: the histories have reported what is unreadable
	for e := range elements(ctx, v, "ui", v.State.UI(), 0, &r) {
		rows = append(rows, e.Raw)
	}
	row := projection.HistoryRow(v.State)
	row.ID, row.Now, row.Size = v.Ref.ID, v.Summary.TS, v.Summary.Size
	item := usage.HistoryItem(rows, row)
	if len(docs.Item) == 0 {
		return item
	}
	return projection.OverItem(docs.Item, item)
}

// originals are the files of a task that are copied unchanged. Each is opened when it is found, since its name may be
// gone by the time of the copy.
type originals struct {
	root *os.Root
	open []*os.File
}

func (o *originals) close() {
	for _, f := range o.open {
		_ = f.Close() // opened for reading only
	}
}

// copyOf returns a file byte for byte as it was read.
func copyOf(name string, doc *roofmt.Document) roofmt.Replacement {
	return roofmt.Replacement{Name: name, Write: func(w io.Writer) error {
		_, err := doc.WriteTo(w)
		return err
	}}
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

// ToFile writes a file, readable by its owner only, and replaces an existing one by one rename when all of it is on
// disk: neither a reader nor a failure leaves half a file. check, if not nil, verifies the finished file before the
// rename. ToFile writes directly to anything but a regular file, such as a pipe or /dev/null.
func ToFile(path string, write func(io.Writer) error, check func(*os.File) error) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		out, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := write(out); err != nil {
			out.Close() //nolint:errcheck // the write error matters
			return err
		}
		return out.Close()
	}
	real, err := target(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	path = real // a link stays one
	sweep(filepath.Dir(path))
	temp, err := unfinished(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		temp.Close() //nolint:errcheck // the first error matters; after a success it is closed already
		if err != nil {
			os.Remove(temp.Name()) //nolint:errcheck // the first error matters
		}
	}()
	if err := write(temp); err != nil {
		return err
	}
	if check != nil {
		if err := check(temp); err != nil {
			return fmt.Errorf("check %s: %w", path, err)
		}
	}
	if err = temp.Sync(); err == nil {
		err = temp.Close()
	}
	if err == nil {
		err = atomicfile.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_ = atomicfile.SyncDir(filepath.Dir(path)) // the file is whole; a folder that may not be read cannot be synced
	return nil
}

// links bounds the chain of links to a file.
const links = 40

// target returns the file that a path leads to; it need not exist yet.
func target(path string) (string, error) {
	at := path
	for range links {
		folder, name := filepath.Split(at)
		dir, err := filepath.EvalSymlinks(filepath.FromSlash(folder + ".")) // ".." is relative to the target of a link
		if err != nil && at == path {
			return path, nil //nolint:nilerr // the write reports it
		}
		if err != nil {
			return "", err
		}
		at = filepath.Join(dir, name)
		to, err := os.Readlink(at)
		if err != nil {
			return at, nil //nolint:nilerr // it is not a link, or the write reports why it is unreadable
		}
		if at = to; !filepath.IsAbs(to) {
			at = dir + string(filepath.Separator) + to
		}
	}
	return "", errors.New("its links form a loop")
}

// prefix begins the names of unfinished files.
const prefix = ".roost-export-"

// unfinished makes a file to write into and locks it, so that no other export removes it as a leftover. If one
// removes it in the moment before the lock, unfinished makes another. On a file system without locks it stays
// unlocked.
func unfinished(dir string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(dir, prefix+"*")
		if err != nil {
			return nil, err
		}
		ok, err := filelock.Try(f, filelock.Exclusive)
		if (ok || err != nil) && filelock.Same(f, f.Name()) {
			return f, nil
		}
		f.Close()
	}
}

// sweep removes what killed exports left in a folder: unfinished files that no process holds. A file that cannot be
// removed is left for the next export.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		ok, err := filelock.Try(f, filelock.Exclusive)
		if os.PathSeparator == '\\' { // it removes no open file
			f.Close()
		}
		if ok && err == nil {
			os.Remove(name) //nolint:errcheck // the next export tries again
		}
		f.Close()
	}
}

// MarkdownName returns the file name that Roo proposes for a task of that time, in Unix milliseconds, in the zone
// loc: roo_task_apr-14-2026_8-53-20-pm.md.
func MarkdownName(ts int64, loc *time.Location) string {
	return "roo_task_" + strings.ToLower(time.UnixMilli(ts).In(loc).Format("Jan-2-2006_3-04-05-PM")) + ".md"
}

// nameMost bounds a name, in bytes, so that an extension and a number fit after it in the 255 bytes that file systems
// accept.
const nameMost = 255 - len(".archive~9999")

// FileName turns an id that another program chose into a file name for every system: it writes a character other than
// a letter, digit, dot, dash or underscore as %XX, and a leading dot too. It cuts a name that is too long and adds a
// digest, so that ids with the same beginning differ.
func FileName(id string) string {
	var out strings.Builder
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	name := out.String()
	if len(name) <= nameMost {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	return name[:nameMost-9] + "~" + hex.EncodeToString(sum[:4])
}

// Options select how a task is written for readers. The zero value masks nothing.
type Options struct {
	Mask *redact.Redactor // nil masks nothing
}

// elements yields a history in order. It notes unreadable messages in the report and continues after them. It ends
// early when ctx ends; the caller returns that error.
func elements(ctx context.Context, v *store.View, name string, list []*task.Message, from int, r *api.Exported) iter.Seq[Element] {
	return func(yield func(Element) bool) {
		n := from
		for raw, err := range fold.Raws(ctx, v.State, list) {
			if ctx.Err() != nil {
				return
			}
			if n++; err != nil {
				r.Unread = append(r.Unread, api.Unread{History: name, Number: n, Problem: err.Error()})
			} else if !yield(Element{Number: n, Raw: raw, Message: list[n-from-1]}) {
				return
			}
		}
	}
}

// trouble adds to an error the task and the form that was being written.
func trouble(v *store.View, form string, errs ...error) error {
	return api.Failed(errors.Join(errs...), "export task %s as %s", v.Ref.ID, form)
}
