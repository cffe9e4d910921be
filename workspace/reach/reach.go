// Package reach decides whether a server has the folder that a task worked in on another server. An equal path is no
// proof: each machine may have a folder with this path. The proof is one of these:
//
//   - The folder lies in a shared folder, which both servers have under one name and whose file markName holds the same
//     text. The paths may differ.
//   - The same server worked in it, at this path: a server has an id, which its root keeps.
//   - The system of a machine gives the folder the same numbers, and the machine was not started again in between.
//
// Where no server that runs has the folder, a server may clone it: from a remote that its operator named, at a commit that
// the remote has, with the files that differed as the task's checkpoints hold them. See Cloning.
//
// A task of a shared folder is found there and nowhere else. Without the mark, a folder that is not mounted would
// look like an empty workspace. A record of shared folders in the database instead of the mark was rejected for this
// reason.
package reach

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/internal/process"
	"github.com/roost-dev/roost/workspace"
)

// markName is a file in a shared folder, which the first server makes. Its text distinguishes the folder from all
// others.
const markName = ".roost-shared"

// Server knows the folders that one server reaches. It is safe for concurrent use. In a process without a group the
// Server is nil: each path means the folder at this path.
type Server struct {
	id      string
	folders []folder
	clones  Cloning
	running func(context.Context) ([]api.GroupServer, error)

	mu   sync.Mutex
	gone map[string]time.Time // by servers whose workspaces this one lacks: when this one first noticed that they do not run
}

// Options name the folders that a server reaches in addition to its own.
type Options struct {
	Shared  []string // folders that servers share, as NAME=DIR
	Clones  Cloning
	Running func(context.Context) ([]api.GroupServer, error) // the running servers; nil = none is known
}

type folder struct{ name, path string }

// validName is the form of a shared folder's name. It has no path separator, and cannot be mistaken for an option.
var validName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// New returns the Server with an id. It makes missing marks in shared folders, and the folder for clones.
func New(id string, o Options) (*Server, error) {
	s := &Server{id: id, clones: o.Clones, running: o.Running, gone: map[string]time.Time{}}
	if s.running == nil {
		s.running = func(context.Context) ([]api.GroupServer, error) { return nil, nil }
	}
	if err := s.clones.open(time.Now()); err != nil {
		return nil, err
	}
	for _, text := range o.Shared {
		f := folder{}
		f.name, f.path, _ = strings.Cut(text, "=")
		switch {
		case !validName().MatchString(f.name) || !filepath.IsAbs(f.path):
			return nil, fmt.Errorf("share the folder %q: want NAME=DIR: a name of letters, digits, dots and hyphens, and an absolute folder", text)
		case slices.ContainsFunc(s.folders, func(o folder) bool { return o.name == f.name }):
			return nil, fmt.Errorf("share the folder %q: another one has this name", text)
		}
		if _, _, err := f.open(); errors.Is(err, errNoMark) {
			err = atomicfile.Create(filepath.Join(f.path, markName), []byte(rand.Text()+"\n"))
			if err != nil && !errors.Is(err, fs.ErrExist) { // another server was first
				return nil, fmt.Errorf("share the folder %q: make the file that marks it: %w", text, err)
			}
		}
		if _, _, err := f.open(); err != nil {
			return nil, fmt.Errorf("share the folder %q: %w", text, err)
		}
		s.folders = append(s.folders, f)
	}
	return s, nil
}

var errNoMark = errors.New("it lacks the file " + markName + ": it is not mounted, or the file was removed")

// open returns the folder's path without links, and the text of its mark.
func (f folder) open() (root, mark string, err error) {
	if root, err = filepath.EvalSymlinks(f.path); err != nil {
		return "", "", err
	}
	data, err := inputfile.Read(filepath.Join(root, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", errNoMark
	}
	if mark = strings.TrimSpace(string(data)); err == nil && (mark == "" || len(mark) > 100) {
		err = fmt.Errorf("its file %s is not a mark that Roost wrote", markName)
	}
	return root, mark, err
}

// Folders returns the shared folders that exist now.
func (s *Server) Folders() []api.SharedFolder {
	list := []api.SharedFolder{}
	if s == nil {
		return list
	}
	for _, f := range s.folders {
		if _, mark, err := f.open(); err == nil {
			list = append(list, api.SharedFolder{Name: f.name, Path: f.path, Mark: mark})
		}
	}
	return list
}

// ID returns the id of the server; "" outside of a group.
func (s *Server) ID() string {
	if s == nil {
		return ""
	}
	return s.id
}

// Marks returns the files that mark shared folders: no agent may change them without asking.
func (s *Server) Marks() []string {
	if s == nil {
		return nil
	}
	return api.Each(s.folders, func(f folder) string { return filepath.Join(f.path, markName) })
}

// Identify returns the identity by which other servers recognise a folder of this one, which is absolute and without
// links. If shared folders contain each other, the inner one counts.
func (s *Server) Identify(root string) (p api.FolderID) {
	if s == nil {
		return p
	}
	p.Server, p.Inode, p.Store = s.id, inode(root), s.storeOf(root)
	longest := 0
	for _, f := range s.folders {
		at, mark, err := f.open()
		if err != nil || len(at) <= longest {
			continue
		}
		if below, err := filepath.Rel(at, root); err == nil && filepath.IsLocal(below) {
			p.Shared, p.Mark, p.Below, longest = f.name, mark, filepath.ToSlash(below), len(at)
		}
	}
	return p
}

// inode identifies a folder while this machine runs; "" if that is unknown.
func inode(root string) string {
	info, err := os.Stat(root)
	if err != nil || process.Boot() == "" {
		return ""
	}
	if _, n, device := workspace.Identity(info); n != 0 {
		return fmt.Sprintf("%s %d %d", process.Boot(), device, n)
	}
	return ""
}

// Find returns the path on this server of a task's workspace, from the path and the identity that the task records. The folder
// may not exist any more. The error is the reason why this server lacks the workspace.
func (s *Server) Find(was string, p api.FolderID) (string, error) {
	switch {
	case s == nil:
		return was, nil
	case p.Shared == "" && (p.Server == s.id || p.Inode != "" && p.Inode == inode(was)):
		return was, nil
	case p.Server == "" && p.Inode == "":
		return "", errors.New("nothing records which server's folder it is: the task is of an earlier version, or was migrated")
	case p.Shared == "":
		return "", errors.New("it is a folder of another server, and no shared folder")
	}
	at, err := s.shared(p)
	if err != nil {
		return "", err
	}
	// Whoever writes to the shared folder could put a link there, to a folder of this server.
	switch real, err := filepath.EvalSymlinks(at); {
	case err != nil:
		return "", fmt.Errorf("the shared folder %s has no folder %s", p.Shared, p.Below)
	case real != at:
		return "", fmt.Errorf("%s in the shared folder %s is a link", p.Below, p.Shared)
	}
	if real, err := filepath.EvalSymlinks(was); err == nil && real == at {
		return was, nil // as its user wrote it
	}
	return at, nil
}

// shared returns the path on this server of a workspace in a shared folder.
func (s *Server) shared(p api.FolderID) (string, error) {
	i := slices.IndexFunc(s.folders, func(f folder) bool { return f.name == p.Shared })
	if i < 0 {
		return "", fmt.Errorf("it lies in the shared folder %s, which this server does not have", p.Shared)
	}
	root, mark, err := s.folders[i].open()
	switch {
	case err != nil:
		return "", fmt.Errorf("it lies in the shared folder %s, which this server cannot use: %w", p.Shared, err)
	case mark != p.Mark:
		return "", fmt.Errorf("it lies in the shared folder %s, and %s is another folder: it has another file %s", p.Shared,
			s.folders[i].path, markName)
	case !filepath.IsLocal(filepath.FromSlash(p.Below)):
		return "", fmt.Errorf("%q is no path in the shared folder %s", p.Below, p.Shared)
	}
	return filepath.Join(root, filepath.FromSlash(p.Below)), nil
}

// Check repeats Find once the workspace is open, at a path without links: a link may have appeared there after Find.
func (s *Server) Check(root string, p api.FolderID) error {
	if s == nil || p.Shared == "" {
		return nil
	}
	at, err := s.shared(p)
	if err == nil && at != root {
		err = fmt.Errorf("%s in the shared folder %s led to %s when it was opened", p.Below, p.Shared, root)
	}
	return err
}

// SharedName returns a name for stored data about a workspace's files: it is the same on each server that has the
// workspace in a shared folder. "" = the workspace is in none.
func SharedName(p api.FolderID) string {
	if p.Shared == "" {
		return ""
	}
	return path.Join(p.Mark, p.Shared, p.Below) // no absolute path is equal to it
}

// Has reports whether a server announces that it has a workspace of this identity.
func Has(s api.GroupServer, p api.FolderID) bool {
	if p.Shared == "" {
		return p.Server == s.ID
	}
	return slices.ContainsFunc(s.Folders, func(f api.SharedFolder) bool { return f.Name == p.Shared && f.Mark == p.Mark })
}

// Clones reports whether a server announces that it clones workspaces of this identity.
func Clones(s api.GroupServer, p api.FolderID) bool { return uncloned(p, s.ClonesFrom) == "" }

// Unreached returns why no running server takes over a task with a workspace of this identity; "" when one may.
func Unreached(p api.FolderID, running []api.GroupServer) string {
	switch {
	case slices.ContainsFunc(running, func(s api.GroupServer) bool { return Has(s, p) }):
		return ""
	case p.Shared != "":
		return "no server that runs has the shared folder " + p.Shared
	}
	why := "the workspace lies in no shared folder"
	for _, s := range running {
		if why = uncloned(p, s.ClonesFrom); why == "" {
			return ""
		}
	}
	return "the server that has its workspace does not run, and " + why
}
