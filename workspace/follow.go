package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many links one path may lead through; Linux gives up at 40.
const maxLinks = 40

// followLinks resolves every symbolic link in a clean absolute path, of which done
// needs no more looking at and todo are the names behind it. Unlike
// filepath.EvalSymlinks it continues where nothing exists yet, also behind a
// dangling link: the place where a new file would appear is what counts. The
// info is that of the end, nil when nothing is there.
//
// A path that leads through a file is given back as it is; nothing can be there.
func followLinks(abs, done string, todo []string) (string, fs.FileInfo, error) {
	sep := string(filepath.Separator)
	links := 0
	var last fs.FileInfo
	looked := false // last is what there is at done
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done, looked = filepath.Dir(done), false
			continue
		}
		if len(part) > 255 {
			return "", nil, fmt.Errorf("%w: a name longer than 255 bytes", ErrPath)
		}
		next := join(done, part)
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			// Go on: the rest may hold ".." from a link's target.
			done, last, looked = next, nil, true
			continue
		}
		if err != nil {
			if isNotDir(err) {
				return abs, nil, nil
			}
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if len(todo) > 0 && !info.IsDir() {
				return abs, nil, nil
			}
			done, last, looked = next, info, true
			continue
		}
		if links++; links > maxLinks {
			return "", nil, fmt.Errorf("%w: more than %d symbolic links", ErrPath, maxLinks)
		}
		target, err := os.Readlink(next)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) {
			todo = append([]string{part}, todo...) // removed or replaced since the look: look again
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(target) {
			vol := filepath.VolumeName(target)
			done, looked = vol+sep, false
			target = target[len(vol):]
		}
		todo = append(strings.Split(filepath.FromSlash(target), sep), todo...)
	}
	if !looked {
		var err error
		if last, err = os.Lstat(done); err != nil {
			last = nil
		}
	}
	return done, last, nil
}

// join is filepath.Join for a clean folder and a name.
func join(dir, name string) string {
	if os.IsPathSeparator(dir[len(dir)-1]) {
		return dir + name
	}
	return dir + string(filepath.Separator) + name
}
