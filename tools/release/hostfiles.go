package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The programs of this machine that an image for tasks gets: what it must have, and what it has where the machine does.
var (
	mustHave = []string{"sh", "git"}
	mayHave  = strings.Fields(`awk basename bash cat chmod cmp comm cp cut date diff dirname du echo env expr false find
		grep gunzip gzip head id install ln ls make mkdir mktemp mv nproc od patch printf ps pwd readlink realpath rm rmdir
		sed seq sha256sum sleep sort split stat tail tar tee test timeout touch tr true uname uniq wc which xargs`)
)

// hostFiles are the programs with the shared libraries that they name, at the same places as here, and the helpers of
// git. They are only as reproducible, and as free to hand on, as the system of this machine is.
func hostFiles(ctx context.Context) ([]file, error) {
	h := hostCopy{files: map[string]file{}}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib64"} { // links to /usr on most systems
		if to, err := os.Readlink(dir); err == nil {
			h.files[dir[1:]] = file{Name: dir[1:], Mode: fs.ModeSymlink | 0o777, Link: to}
		}
	}
	for _, name := range append(slices.Clone(mustHave), mayHave...) {
		path, err := exec.LookPath(name)
		if err != nil && slices.Contains(mustHave, name) {
			return nil, fmt.Errorf("copy %s of this machine: %w", name, err)
		}
		if err != nil {
			continue
		}
		if err := h.add(path); err != nil {
			return nil, fmt.Errorf("copy %s of this machine: %w", name, err)
		}
	}
	if err := h.addGit(ctx); err != nil {
		return nil, fmt.Errorf("copy git of this machine: %w", err)
	}
	out := make([]file, 0, len(h.files))
	for _, f := range h.files {
		out = append(out, f)
	}
	return out, nil
}

type hostCopy struct{ files map[string]file }

// addGit adds git's helpers. Those that are the same file as git become links.
func (h hostCopy) addGit(ctx context.Context) error {
	own, err := exec.LookPath("git")
	if err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	if err != nil {
		return err
	}
	itself, err := os.Stat(own)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return err
	}
	helpers, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*"))
	if err != nil {
		return err
	}
	for _, pattern := range []string{"*", "*/*"} { // without them git init warns
		templates, err := filepath.Glob("/usr/share/git-core/templates/" + pattern)
		if err != nil {
			return err
		}
		helpers = append(helpers, templates...)
	}
	for _, path := range helpers {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
		case info.Mode().IsRegular() && os.SameFile(info, itself):
			h.files[path[1:]] = file{Name: path[1:], Mode: fs.ModeSymlink | 0o777, Link: own}
		default:
			if err := h.add(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a file, what it links to, and the libraries that it names.
func (h hostCopy) add(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	path = filepath.Join(dir, filepath.Base(path))
	if _, known := h.files[path[1:]]; known {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		h.files[path[1:]] = file{Name: path[1:], Mode: fs.ModeSymlink | 0o777, Link: target}
		return h.add(target)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	h.files[path[1:]] = file{Name: path[1:], Mode: info.Mode().Perm(), Data: data}
	return h.addLibraries(path, data)
}

func (h hostCopy) addLibraries(path string, data []byte) error {
	e, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil //nolint:nilerr // a script or data
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err != nil {
				return err
			}
			if err := h.add(strings.TrimRight(string(name), "\x00")); err != nil {
				return err
			}
		}
	}
	needed, err := e.ImportedLibraries()
	if err != nil {
		return err
	}
	var places []string
	origin := strings.NewReplacer("$ORIGIN", filepath.Dir(path), "${ORIGIN}", filepath.Dir(path))
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		found, _ := e.DynString(tag) // most files have none
		for _, list := range found {
			for place := range strings.SplitSeq(list, ":") {
				places = append(places, origin.Replace(place))
			}
		}
	}
	places = append(places, libraryFolders()...)
	for _, name := range needed {
		i := slices.IndexFunc(places, func(place string) bool { return runsLike(e, filepath.Join(place, name)) })
		if i < 0 {
			return fmt.Errorf("%s needs %s: %w in %v", path, name, errors.ErrUnsupported, places)
		}
		if err := h.add(filepath.Join(places[i], name)); err != nil {
			return err
		}
	}
	return nil
}

// libraryFolders are where the loader looks.
func libraryFolders() []string {
	var out []string
	configs, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf")
	for _, config := range configs {
		data, _ := os.ReadFile(config) // as the loader does, go on without it
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
				out = append(out, line)
			}
		}
	}
	return append(out, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

func runsLike(e *elf.File, path string) bool {
	other, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer other.Close()
	return other.Class == e.Class && other.Machine == e.Machine
}
