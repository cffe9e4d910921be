package export

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

// An archive is a ZIP file: every system can open it, and a program can read one file without the others. It holds:
//
//	tasks/<name>/task/...   the task's folder
//	tasks/<name>/log/...    journal and blobs, where they are outside of that folder
//	manifest.json           what each task is, and the SHA-256 of every file; last
//
// Bytes of a path other than letters, digits and -_.~ are written as %XX, so that the archive can hold any file name;
// url.PathUnescape of each part returns the name. Locks, the journal's index and unfinished files are left out: they
// are derived or worthless.
const (
	ManifestName  = "manifest.json"
	ArchiveFormat = "roost-archive"
)

// Manifest describes an archive.
type Manifest struct {
	Format  string         `json:"format"` // "roost-archive"
	Version int            `json:"version"`
	Tasks   []ArchivedTask `json:"tasks"`
	Files   []ArchivedFile `json:"files"`
}

// ArchivedTask is one task of an archive.
type ArchivedTask struct {
	ID      string       `json:"id"`
	Dir     string       `json:"dir"` // tasks/<name>
	Source  string       `json:"source"`
	Tool    string       `json:"tool"`
	Title   string       `json:"title"`
	Saved   uint64       `json:"saved,omitempty"` // the newest commit of its journal: a copy that ends earlier is incomplete
	Damaged []api.Damage `json:"damaged"`
	Skipped []string     `json:"skipped"` // what could not be read, and links and devices
}

// ArchivedFile is one file of an archive.
type ArchivedFile struct {
	Path   string `json:"path"` // in the archive
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Archive writes tasks with all their files, byte for byte, into one archive. The caller closes each view. The report
// and the manifest name files that could not be read.
func Archive(ctx context.Context, w io.Writer, views iter.Seq2[*store.View, error]) (Report, error) {
	var r Report
	a := &archiver{ctx: ctx, zip: zip.NewWriter(w), names: map[string]bool{}}
	a.manifest = Manifest{Format: ArchiveFormat, Version: 1, Tasks: []ArchivedTask{}, Files: []ArchivedFile{}}
	for v, err := range views {
		if err != nil {
			return r, err
		}
		skipped, err := a.task(v)
		if err != nil {
			return r, trouble(v, "archive", err)
		}
		r.Skipped = append(r.Skipped, skipped...)
	}
	if err := a.close(); err != nil {
		return r, fmt.Errorf("write the archive: %w", err)
	}
	return r, nil
}

type archiver struct {
	ctx      context.Context
	zip      *zip.Writer
	names    map[string]bool
	manifest Manifest
	skipped  []string
}

func (a *archiver) close() error {
	out, err := a.zip.Create(ManifestName)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a.manifest); err != nil {
		return err
	}
	return a.zip.Close()
}

func (a *archiver) task(v *store.View) ([]string, error) {
	name := FileName(v.Ref.ID)
	for n := 2; a.names[name]; n++ {
		name = FileName(v.Ref.ID) + "~" + strconv.Itoa(n)
	}
	a.names[name] = true
	a.skipped = []string{}
	dir := "tasks/" + name
	saved, err := v.Saved(a.ctx) // before the journal is copied: it may grow during the copy
	if err != nil {
		return nil, err
	}
	if v.Ref.Log != v.Ref.Dir {
		if err := a.folder(v.Ref.Log, dir+"/log"); err != nil {
			return nil, err
		}
	}
	if err := a.files(v.Ref.Dir, dir+"/task"); err != nil {
		return nil, err
	}
	a.manifest.Tasks = append(a.manifest.Tasks, ArchivedTask{
		ID: v.Ref.ID, Dir: dir, Source: v.Ref.Source, Tool: v.Summary.Tool, Title: short(v.Summary.Title), Saved: saved,
		Damaged: append([]api.Damage{}, v.Summary.Damaged...), Skipped: a.skipped,
	})
	return a.skipped, nil
}

// journalName is copied before the blobs: each blob exists before the commit that names it, so a journal that grows
// during the copy names no blob that the archive lacks.
const journalName = "journal.jsonl"

// files adds a task's files: its folder, or the one transcript that a subagent has.
func (a *archiver) files(dir, to string) error {
	folder := roofmt.FolderOf(dir)
	if folder == dir {
		return a.folder(dir, to)
	}
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		a.skip(dir, err)
		return nil
	}
	defer root.Close()
	return a.file(root, filepath.Base(dir), to)
}

func (a *archiver) folder(dir, to string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no journal yet
	}
	if err != nil {
		a.skip(dir, err)
		return nil
	}
	defer root.Close()
	if info, err := root.Lstat(journalName); err == nil && info.Mode().IsRegular() {
		if err := a.file(root, journalName, to); err != nil {
			return err
		}
	}
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case a.ctx.Err() != nil:
			return a.ctx.Err()
		case err != nil:
			a.skip(path.Join(dir, name), err)
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case name == "." || name == journalName:
			return nil
		case passing(name):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			a.skip(filepath.Join(dir, name), errors.New("it is a link or a device"))
			return nil
		}
		return a.file(root, name, to)
	})
}

func (a *archiver) skip(name string, err error) {
	a.skipped = append(a.skipped, name+": "+err.Error())
}

// passing reports whether a file is a lock, an index or an unfinished write, of Roost or of Roo.
func passing(name string) bool {
	if strings.Contains(name, "/") {
		return strings.HasPrefix(name, "blobs/tmp-")
	}
	return strings.HasPrefix(name, "journal.idx") || strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, ".roost-")
}

// file copies one file up to the length that it had when it was opened: a journal may grow during the copy.
func (a *archiver) file(root *os.Root, name, to string) error {
	in, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		a.skip(filepath.Join(root.Name(), name), err)
		return nil
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		a.skip(filepath.Join(root.Name(), name), errors.Join(errors.New("it is no longer a file"), err))
		return nil
	}
	full := to + "/" + escaped(name)
	out, err := a.zip.CreateHeader(&zip.FileHeader{Name: full, Method: zip.Deflate, Modified: info.ModTime()})
	if err != nil {
		return err
	}
	sum := sha256.New()
	read := &reading{r: io.LimitReader(in, info.Size()), ctx: a.ctx}
	n, err := io.Copy(io.MultiWriter(out, sum), read)
	if read.err != nil && a.ctx.Err() == nil {
		a.skip(filepath.Join(root.Name(), name), fmt.Errorf("only its first %d bytes could be read: %w", n, read.err))
	} else if err != nil {
		return err
	}
	a.manifest.Files = append(a.manifest.Files, ArchivedFile{Path: full, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// reading wraps an error of reading a source file, as opposed to one of writing the archive.
type reading struct {
	r   io.Reader
	ctx context.Context
	err error
}

func (r *reading) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		r.err = err
		return 0, err
	}
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// escaped writes a path so that every ZIP program reads it alike.
func escaped(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = FileName(parts[i])
		if rest, ok := strings.CutPrefix(parts[i], "%2E"); ok && rest != "" && rest != "." {
			parts[i] = "." + rest // only the names . and .. lead out of the folder
		}
	}
	return strings.Join(parts, "/")
}
