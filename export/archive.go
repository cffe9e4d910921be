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
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/view/markup"
)

// An archive is a ZIP file: every system can open it, and a program can read one file without the others. It holds:
//
//	tasks/<name>/task/...   the task's folder
//	tasks/<name>/log/...    journal and blobs, where they are outside of that folder
//	contents/<sha256>       what a file of a workspace held: checkpoints keep it, and tasks share it
//	manifest.json           a description of each task, and the SHA-256 of every file; last
//
// Bytes of a path other than letters, digits and -_.~ are written as %XX, so that the archive can hold any file name;
// url.PathUnescape of each part returns the name. The archive leaves out locks, the journal's index and unfinished
// files: they are derived or worthless.
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

	Contents []ArchivedFile `json:"contents,omitempty"` // apart, because earlier versions refuse a file outside of tasks
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
	Skipped []string     `json:"skipped"` // unreadable files, and links and devices

	Labels overlay.Entry `json:"labels,omitzero"` // of a task of another tool; a journal holds its own

	Store string `json:"store,omitempty"` // that its checkpoints name for its workspace
}

// ArchivedFile is one file of an archive.
type ArchivedFile struct {
	Path   string `json:"path"` // in the archive
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// contentsDir is the folder of an archive that holds what checkpoints keep.
const contentsDir = "contents/"

// Contents returns what the checkpoints of a task keep, and the name of its workspace's store; "" = they name none.
type Contents func(ctx context.Context, v *store.View) (files iter.Seq[importer.ArchiveFile], store string)

// Archive writes tasks with all their files, byte for byte, and with what their checkpoints keep, into one archive. The
// caller closes each view. The report and the manifest name files that could not be read.
func Archive(ctx context.Context, w io.Writer, views iter.Seq2[*store.View, error], kept Contents) (api.Exported, error) {
	var r api.Exported
	a := &archiver{ctx: ctx, zip: zip.NewWriter(w), kept: kept, names: map[string]bool{}}
	a.manifest = Manifest{Format: ArchiveFormat, Version: 1, Tasks: []ArchivedTask{}, Files: []ArchivedFile{}}
	for v, err := range views {
		if err != nil {
			return r, err
		}
		skipped, err := a.task(v)
		if err != nil {
			return r, trouble(v, "archive", err)
		}
		r.Skipped, r.Damaged = append(r.Skipped, skipped...), append(r.Damaged, v.Summary.Damaged...)
	}
	return r, api.Failed(a.close(), "write the archive")
}

type archiver struct {
	ctx      context.Context
	zip      *zip.Writer
	kept     Contents
	names    map[string]bool // of tasks, and of contents in the archive
	manifest Manifest
	skipped  []string
}

func (a *archiver) close() error {
	out, err := a.zip.Create(ManifestName)
	if err != nil {
		return err
	}
	data, err := api.Encode(a.manifest)
	if err == nil {
		_, err = out.Write(data)
	}
	return errors.Join(err, a.zip.Close())
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
	files, workspace := a.kept(a.ctx, v) // after the journal, which names nothing that is not kept already
	if err := a.contents(files); err != nil {
		return nil, err
	}
	a.manifest.Tasks = append(a.manifest.Tasks, ArchivedTask{
		ID: v.Ref.ID, Dir: dir, Source: v.Ref.Source, Tool: v.Summary.Tool, Title: markup.Short(v.Summary.Title), Saved: saved,
		Damaged: append([]api.Damage{}, v.Summary.Damaged...), Skipped: a.skipped,
		Labels: overlay.Entry{Title: v.Labels.Title, Tags: v.Labels.Tags, Pinned: v.Labels.Pinned},
		Store:  workspace,
	})
	return a.skipped, nil
}

// contents adds what checkpoints keep, each content once.
func (a *archiver) contents(files iter.Seq[importer.ArchiveFile]) error {
	for f := range files {
		to := contentsDir + f.SHA256
		if a.names[to] {
			continue
		}
		a.names[to] = true
		in, err := f.Open()
		if a.ctx.Err() != nil {
			return a.ctx.Err()
		}
		if err != nil {
			a.skip("what a checkpoint keeps of "+f.Path, err)
			continue
		}
		entry, err := a.write(in, f.Path, to, f.MTime)
		if err = errors.Join(err, in.Close()); err != nil {
			return err
		}
		a.manifest.Contents = append(a.manifest.Contents, entry)
	}
	return nil
}

// files adds a task's files: its folder, or the one transcript of a subagent.
func (a *archiver) files(dir, to string) error {
	folder := roofmt.FolderOf(dir)
	if folder == dir {
		return a.folder(dir, to)
	}
	root := a.open(folder, dir)
	if root == nil {
		return nil
	}
	defer root.Close()
	return a.file(root, filepath.Base(dir), to)
}

// open opens a folder. It returns nil when the folder does not exist, as before the first commit of a journal, or
// cannot be opened; then it notes that the archive lacks name.
func (a *archiver) open(folder, name string) *os.Root {
	root, err := inputfile.OpenDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.skip(name, err)
	}
	return root
}

// folder adds the files of a folder. It copies the journal before the blobs: each blob exists before the commit that names
// it, so a journal that grows during the copy names no blob that the archive lacks.
func (a *archiver) folder(dir, to string) error {
	root := a.open(dir, dir)
	if root == nil {
		return nil
	}
	defer root.Close()
	if info, err := root.Lstat(store.JournalName); err == nil && info.Mode().IsRegular() {
		if err := a.file(root, store.JournalName, to); err != nil {
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
		case projection.IsLocalFile(name, e.IsDir()) && e.IsDir():
			return fs.SkipDir
		case name == store.JournalName, e.IsDir(), projection.IsLocalFile(name, false), projection.IsHalfWritten(name),
			strings.HasPrefix(name, "blobs/tmp-"):
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

// file copies one file up to the length that it had when it was opened: a journal may grow during the copy.
func (a *archiver) file(root *os.Root, name, to string) error {
	in, info, err := inputfile.OpenIn(root, filepath.FromSlash(name))
	if err != nil {
		a.skip(filepath.Join(root.Name(), name), err)
		return nil
	}
	defer in.Close()
	size := min(info.Size(), filelog.Counts(a.ctx, root.Name(), name))
	entry, err := a.write(io.LimitReader(in, size), filepath.Join(root.Name(), name), to+"/"+escaped(name), info.ModTime())
	if err == nil {
		a.manifest.Files = append(a.manifest.Files, entry)
	}
	return err
}

// write writes one member of the archive. It notes how much of it could not be read.
func (a *archiver) write(in io.Reader, name, to string, changed time.Time) (entry ArchivedFile, err error) {
	out, err := a.zip.CreateHeader(&zip.FileHeader{Name: to, Method: zip.Deflate, Modified: changed})
	if err != nil {
		return entry, err
	}
	sum := sha256.New()
	read := &reading{r: inputfile.ContextReader(a.ctx, in)}
	n, err := io.Copy(io.MultiWriter(out, sum), read)
	if read.err != nil && a.ctx.Err() == nil {
		a.skip(name, fmt.Errorf("only its first %d bytes could be read: %w", n, read.err))
	} else if err != nil {
		return entry, err
	}
	return ArchivedFile{Path: to, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// reading wraps an error of reading a source file, to distinguish it from an error of writing the archive.
type reading struct {
	r   io.Reader
	err error
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// escaped returns a path in a form that every ZIP program reads alike. It shortens no name: Unpack must get each back.
func escaped(name string) string {
	return strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(name))
}

// Unpack lists the tasks of an archive for importer.Run, which verifies each file against the archive's list while it
// copies. A journal from outside its task's folder goes into the folder, as in Roost's own root. Errors wrap
// ErrArchive or an error of the system. The closer closes the archive, after which no file can be opened.
func Unpack(path string) ([]importer.Original, io.Closer, error) {
	f, err := inputfile.Open(path)
	if errors.Is(err, inputfile.ErrIrregular) {
		return nil, nil, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open the archive: %w", err)
	}
	list, err := unpack(f, path)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("open %s: %w", path, err)
	}
	return list, f, nil
}

func unpack(f *os.File, name string) ([]importer.Original, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	packed, m, err := ReadManifest(f, info.Size())
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(packed.File))
	for i, p := range packed.File {
		if _, twice := at[p.Name]; twice {
			return nil, fmt.Errorf("%w: it holds %s twice", ErrArchive, p.Name)
		}
		at[p.Name] = i
	}
	tasks := map[string]int{}
	list := make([]importer.Original, len(m.Tasks))
	logs := make([][]importer.ArchiveFile, len(m.Tasks))
	for i, t := range m.Tasks {
		if _, twice := tasks[t.Dir]; twice || t.Dir == "" {
			return nil, fmt.Errorf("%w: the task folder %q is in its list twice", ErrArchive, t.Dir)
		}
		tasks[t.Dir] = i
		list[i] = importer.Original{Name: t.ID, Dir: name + ":" + t.Dir, Files: []importer.ArchiveFile{}, Saved: t.Saved, Labels: t.Labels, Store: t.Store}
	}
	for _, file := range m.Files {
		dir, part, inside, err := place(file.Path)
		if err != nil {
			return nil, err
		}
		i, known := tasks[dir]
		z, there := at[file.Path]
		if !known || !there {
			return nil, fmt.Errorf("%w: its list names %s, which it lacks", ErrArchive, file.Path)
		}
		entry := importer.ArchiveFile{
			Path: inside, Size: file.Size, SHA256: file.SHA256, MTime: packed.File[z].Modified, Open: packed.File[z].Open,
		}
		if part == "log" {
			logs[i] = append(logs[i], entry)
		} else {
			list[i].Files = append(list[i].Files, entry)
		}
	}
	contents := make(map[string]importer.ArchiveFile, len(m.Contents))
	for _, c := range m.Contents {
		if z, there := at[c.Path]; there && c.Path == contentsDir+c.SHA256 {
			contents[c.SHA256] = importer.ArchiveFile{Path: c.Path, Size: c.Size, SHA256: c.SHA256, Open: packed.File[z].Open}
		}
	}
	for i := range list { // a file of the journal precedes one of the folder with the same name
		list[i].Files, list[i].Contents = append(logs[i], list[i].Files...), contents
	}
	return list, nil
}

// place splits a path of an archive: tasks/<name>, task or log, and the path inside that folder in this system's form.
func place(path string) (dir, part, inside string, err error) {
	parts := strings.SplitN(path, "/", 4)
	if len(parts) < 4 || parts[0] != "tasks" || parts[2] != "task" && parts[2] != "log" {
		return "", "", "", fmt.Errorf("%w: %q belongs to no task", ErrArchive, path)
	}
	names := strings.Split(parts[3], "/")
	for i := range names {
		plain, err := url.PathUnescape(names[i])
		if err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\x00") {
			return "", "", "", fmt.Errorf("%w: %q is no path inside a task folder", ErrArchive, path)
		}
		names[i] = plain
	}
	inside = filepath.Join(names...)
	if !filepath.IsLocal(inside) {
		return "", "", "", fmt.Errorf("%w: %q is no path inside a task folder on this system", ErrArchive, path)
	}
	return parts[0] + "/" + parts[1], parts[2], inside, nil
}

// ErrArchive means that an archive is damaged or not one of Roost.
var ErrArchive = errors.New("not a whole archive of tasks")

// maxManifest bounds the manifest, in bytes: the file is untrusted.
const maxManifest = 256 << 20

// ReadManifest reads the manifest of an archive. It checks nothing else.
func ReadManifest(r io.ReaderAt, size int64) (*zip.Reader, Manifest, error) {
	var m Manifest
	files, err := zip.NewReader(r, size)
	if err != nil {
		return nil, m, fmt.Errorf("%w: %v", ErrArchive, err)
	}
	in, err := files.Open(ManifestName)
	if err != nil {
		return nil, m, fmt.Errorf("%w: it has no %s", ErrArchive, ManifestName)
	}
	defer in.Close() //nolint:errcheck // opened for reading only
	if err := json.NewDecoder(io.LimitReader(in, maxManifest)).Decode(&m); err != nil {
		return nil, m, fmt.Errorf("%w: read %s: %v", ErrArchive, ManifestName, err)
	}
	if m.Format != ArchiveFormat || m.Version != 1 {
		return nil, m, fmt.Errorf("%w: format %q, version %d", ErrArchive, m.Format, m.Version)
	}
	return files, m, nil
}

// VerifyArchive reads every file of an archive and compares the archive with its manifest: the same files, sizes and
// checksums.
func VerifyArchive(ctx context.Context, r io.ReaderAt, size int64) (Manifest, error) {
	files, m, err := ReadManifest(r, size)
	if err != nil {
		return m, err
	}
	want := make(map[string]ArchivedFile, len(m.Files))
	for _, f := range append(m.Files, m.Contents...) {
		want[f.Path] = f
	}
	for _, f := range files.File {
		if f.Name == ManifestName {
			continue
		}
		expected, ok := want[f.Name]
		if !ok {
			return m, fmt.Errorf("%w: %s is missing from its list of files, or listed twice", ErrArchive, f.Name)
		}
		delete(want, f.Name)
		if err := same(ctx, f, expected); err != nil {
			return m, err
		}
	}
	for name := range want {
		return m, fmt.Errorf("%w: its list names %s, which it lacks", ErrArchive, name)
	}
	return m, nil
}

func same(ctx context.Context, f *zip.File, want ArchivedFile) error {
	in, err := f.Open()
	if err != nil {
		return fmt.Errorf("%w: open %s: %v", ErrArchive, f.Name, err)
	}
	defer in.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, inputfile.ContextReader(ctx, io.LimitReader(in, want.Size+1)))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: read %s: %v", ErrArchive, f.Name, err)
	case n != want.Size || hex.EncodeToString(sum.Sum(nil)) != want.SHA256:
		return fmt.Errorf("%w: %s differs from its entry in the list of files", ErrArchive, f.Name)
	}
	return nil
}
