package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many links one path may lead through; Linux gives up at 40.
const maxLinks = 40

// follow resolves every symbolic link in a clean absolute path. Unlike
// filepath.EvalSymlinks it goes on where nothing exists yet, also behind a
// dangling link: the place where a new file would appear is what counts.
//
// A path that leads through a file is given back as it is; nothing can be there.
func follow(abs string) (string, error) {
	vol := filepath.VolumeName(abs)
	sep := string(filepath.Separator)
	done := vol + sep
	todo := strings.Split(strings.TrimPrefix(abs[len(vol):], sep), sep)
	links := 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		if len(part) > 255 {
			return "", fmt.Errorf("%w: a name longer than 255 bytes", ErrPath)
		}
		next := filepath.Join(done, part)
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			// Go on: the rest may hold ".." from a link's target.
			done = next
			continue
		}
		if err != nil {
			if isNotDir(err) {
				return abs, nil
			}
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if len(todo) > 0 && !info.IsDir() {
				return abs, nil
			}
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%w: more than %d symbolic links", ErrPath, maxLinks)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			vol = filepath.VolumeName(target)
			done = vol + sep
			target = target[len(vol):]
		}
		todo = append(strings.Split(filepath.FromSlash(target), sep), todo...)
	}
	return done, nil
}
