package server

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// leastRoom is the free space that a disk must have, in bytes: with less it cannot store a turn.
const leastRoom = 1 << 20

// room is why tasks of the root cannot be read or stored, without paths; "" when they can. It writes nothing. The root
// may not exist yet: the first task makes it. A root that existed before and does not now is lost with all tasks.
func (s *Server) room() string {
	root := s.service.Root()
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
			return "it is missing"
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
