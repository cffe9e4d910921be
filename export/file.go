package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
		return errors.Join(write(out), out.Close())
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays one
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".roost-export-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	open := true
	defer func() {
		if open {
			err = errors.Join(err, temp.Close())
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

// syncFolder makes a rename durable where folders can be synced.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil //nolint:nilerr // the file is whole; a folder that may not be read cannot be synced
	}
	d.Sync() //nolint:errcheck // not every system syncs folders
	return d.Close()
}
