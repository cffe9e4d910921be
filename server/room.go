package server

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// leastRoom is how much room a disk must have, in bytes: with less no turn can be kept.
const leastRoom = 1 << 20

// room says why tasks of the root could not be read or kept, without paths; "" when they
// can. Nothing is written to find that out. There may be no root yet: it comes into being
// with the first task. One that was there and is not any more is gone, with all tasks.
func (s *Server) room() string {
	root := s.opt.Store.Root()
	for _, dir := range []string{root, filepath.Join(root, "tasks")} {
		f, err := os.Open(dir)
		if err == nil {
			_, err = f.Readdirnames(1)
			f.Close()
		}
		switch {
		case err == nil, errors.Is(err, io.EOF):
			s.rooted.Store(true)
		case errors.Is(err, fs.ErrNotExist) && dir == root && s.rooted.Load():
			return "it is gone"
		case errors.Is(err, fs.ErrNotExist) && dir == root:
			return ""
		case errors.Is(err, fs.ErrNotExist): // no task yet
		case errors.Is(err, fs.ErrPermission):
			return "it may not be read"
		default:
			return "it cannot be read"
		}
	}
	return kept(root, leastRoom)
}
