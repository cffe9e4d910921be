package export

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/store/importer"
)

// Unpack lists the tasks of an archive for importer.Run, which verifies each file against the archive's list while it
// copies. A journal from outside of its task's folder goes into the folder, as in Roost's own root. Errors wrap ErrArchive
// or an error of the system. The closer closes the archive; no file can be opened afterwards.
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
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is not a regular file", ErrArchive)
	}
	packed, m, err := ReadManifest(f, info.Size())
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(packed.File))
	for i, p := range packed.File {
		if _, twice := at[p.Name]; twice {
			return nil, fmt.Errorf("%w: %s is in it twice", ErrArchive, p.Name)
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
		list[i] = importer.Original{Name: t.ID, Dir: name + ":" + t.Dir, Files: []importer.ArchiveFile{}, Saved: t.Saved}
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
	for i := range list { // a file of the journal precedes one of the folder with the same name
		list[i].Files = append(logs[i], list[i].Files...)
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
