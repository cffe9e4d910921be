package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ToFile writes a file, readable by its owner only, and replaces what is there by one
// rename once all of it is on disk: a reader, and a failure, never meet a half. check,
// if not nil, looks at the finished file before that. What is no plain file, such as a
// pipe or /dev/null, is written to directly.
func ToFile(path string, write func(io.Writer) error, check func(*os.File) error) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		out, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := write(out); err != nil {
			out.Close() //nolint:errcheck // the error of the writing is the one to tell
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
	open := true
	defer func() {
		if open {
			temp.Close() //nolint:errcheck // the error that led here is the one to tell
		}
		if err != nil {
			os.Remove(temp.Name()) //nolint:errcheck // the error that led here is the one to tell
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
	if err := temp.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	open = false
	if err := temp.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

// links bounds how many links lead to a file.
const links = 40

// target is the file that a path leads to, also where there is none yet.
func target(path string) (string, error) {
	at := path
	for range links {
		folder, name := filepath.Split(at)
		dir, err := filepath.EvalSymlinks(filepath.FromSlash(folder + ".")) // ".." is meant from where a link leads
		if err != nil && at == path {
			return path, nil //nolint:nilerr // the writing tells
		}
		if err != nil {
			return "", err
		}
		at = filepath.Join(dir, name)
		to, err := os.Readlink(at)
		if err != nil {
			return at, nil //nolint:nilerr // it is no link, or cannot be looked at, which the writing tells
		}
		if at = to; !filepath.IsAbs(to) {
			at = dir + string(filepath.Separator) + to
		}
	}
	return "", errors.New("its links lead round in a circle")
}

// prefix is how the names of unfinished files begin.
const prefix = ".roost-export-"

// unfinished makes a file to write into. Another export may take it for a leftover in the
// moment before it is held; then there is another one.
func unfinished(dir string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(dir, prefix+"*")
		if err != nil {
			return nil, err
		}
		held, _ := hold(f)
		if _, err := os.Lstat(f.Name()); !held && err == nil {
			return f, nil
		}
		f.Close()
	}
}

// sweep removes what exports that were killed left in a folder: unfinished files that no
// process holds. What it cannot remove stays for another time.
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
		_, err = hold(f)
		if os.PathSeparator == '\\' {
			f.Close()
		}
		if err == nil {
			os.Remove(name) //nolint:errcheck // the next export tries again
		}
		f.Close()
	}
}

// syncFolder makes a rename durable where folders can be synced.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil //nolint:nilerr // the file is whole; a folder that may not be read cannot be synced
	}
	d.Sync() //nolint:errcheck // not every system syncs folders
	return d.Close()
}
