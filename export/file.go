package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
)

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
	open := true
	defer func() {
		if open {
			temp.Close() //nolint:errcheck // the first error matters
		}
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
	if err := temp.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	open = false
	if err := temp.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := atomicfile.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_ = atomicfile.SyncDir(filepath.Dir(path)) // the file is whole; a folder that may not be read cannot be synced
	return nil
}

// links bounds how many links lead to a file.
const links = 40

// target is the file that a path leads to; it need not exist yet.
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

// unfinished makes a file to write into and locks it, so that other exports do not take it for a leftover. One may remove
// it in the moment before the lock; then unfinished makes another one. On a file system without locks it stays unlocked.
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

// sweep removes what killed exports left in a folder: unfinished files that no process holds. The next export tries
// again to remove a file that stays.
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
