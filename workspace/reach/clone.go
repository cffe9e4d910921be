package reach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/workspace/usergit"
)

// Cloning names the remotes that a server may clone workspaces from, and the folder for the clones. The zero Cloning clones
// nothing.
//
// A clone is a folder of its own for one task: DIR/ID/tree, beside DIR/ID/origin.json, which names the store that the
// task's checkpoints are in. Everything in it can be made again as long as the task exists, so clones may be deleted.
// Roost removes the clones of purged tasks.
type Cloning struct {
	Dir  string   // absolute
	From []string // beginnings of addresses of remotes, up to a slash or colon: https://git.example.org/team/

	// After is how long the server of a workspace must be away before its tasks continue in clones without a person's
	// request: it may be restarting.
	After time.Duration
}

const folders = `([A-Za-z0-9][A-Za-z0-9._~+-]*/)*$`

var (
	prefixes = lazyregexp.New(`^(https://|ssh://([A-Za-z0-9_.-]+@)?)[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/` + folders +
		`|^[A-Za-z0-9_.-]+@[A-Za-z0-9][A-Za-z0-9.-]*:` + folders + `|^/([A-Za-z0-9._][A-Za-z0-9._~+-]*/)+$`)
	// storeNames are names of stores of package checkpoint.
	storeNames = lazyregexp.New(`^[A-Za-z0-9_-]{1,40}-[0-9a-f]{16}$`)
	remainder  = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._~+-]*(/[A-Za-z0-9][A-Za-z0-9._~+-]*)*/?$`)
)

const (
	treeName   = "tree"
	originName = "origin.json"
	tempPrefix = ".clone-"
	// describeTime bounds how long the start of a run waits for git.
	describeTime = 30 * time.Second
	// cloneTime bounds one clone.
	cloneTime = 30 * time.Minute
	// tempAge is the age from which a temporary folder counts as left by a dead process: twice the time that a clone
	// may take.
	tempAge = 2 * cloneTime
)

// origin is the content of a clone's file.
type origin struct {
	Store  string `json:"store"`
	Server string `json:"server"` // the id of the server that made it
	Task   string `json:"task"`
}

func (c Cloning) check() error {
	for _, p := range c.From {
		if !prefixes().MatchString(p) {
			return fmt.Errorf("clone from %q: want the beginning of remote addresses, up to a slash or a colon, such as "+
				"https://git.example.org/team/", p)
		}
	}
	switch {
	case len(c.From) == 0 && c.Dir == "":
		return nil
	case len(c.From) == 0 || c.Dir == "":
		return errors.New("clone workspaces: name the folder for them and from where")
	case !filepath.IsAbs(c.Dir):
		return fmt.Errorf("clone workspaces into %q: want an absolute folder", c.Dir)
	}
	return nil
}

// open makes the folder, and removes what dead processes left in it.
func (c *Cloning) open(now time.Time) error {
	err := c.check()
	if err != nil || c.Dir == "" {
		return err
	}
	if err = os.MkdirAll(c.Dir, 0o700); err == nil {
		c.Dir, err = filepath.EvalSymlinks(c.Dir)
	}
	list, bad := os.ReadDir(c.Dir)
	if err = errors.Join(err, bad); err != nil {
		return fmt.Errorf("clone workspaces: %w", err)
	}
	for _, d := range list {
		if info, err := d.Info(); err == nil && strings.HasPrefix(d.Name(), tempPrefix) && now.Sub(info.ModTime()) > tempAge {
			_ = os.RemoveAll(filepath.Join(c.Dir, d.Name()))
		}
	}
	return nil
}

// Allowed reports whether an address begins with one of some prefixes and continues with a plain path.
func Allowed(from []string, address string) bool {
	return slices.ContainsFunc(from, func(p string) bool {
		rest, is := strings.CutPrefix(address, p)
		return is && remainder().MatchString(rest)
	})
}

// ClonesFrom returns the prefixes of the remotes that this server clones from.
func (s *Server) ClonesFrom() []string { return s.clones.From }

// Describe returns the data that another server needs to clone the work tree of a folder, and the paths of the files that
// differ from its commit.
// nil where this server names no remotes to clone from, or shares the folder.
func (s *Server) Describe(ctx context.Context, root string) (*api.WorkTree, []string) {
	if s == nil || len(s.clones.From) == 0 || s.Identify(root).Shared != "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	t, differ, err := usergit.Describe(ctx, root, func(address string) bool { return Allowed(s.clones.From, address) })
	if err != nil {
		return &api.WorkTree{Problem: err.Error()}, nil
	}
	return &t, differ
}

// uncloned returns why servers that clone from some remotes cannot clone a workspace; "" = they can.
func uncloned(p api.FolderID, from []string) string {
	switch t := p.Tree; {
	case len(from) == 0 || p.Shared != "" || t == nil:
		return "the workspace lies in no shared folder"
	case t.Problem != "":
		return "it cannot be cloned: " + t.Problem
	case !Allowed(from, t.Remote):
		return "servers do not clone from " + t.Remote
	}
	return ""
}

// ToClone reports whether this server lacks a workspace that a task had at a path, and may clone it, because no
// running server has it. The error is the reason why it lacks the workspace and may not clone it. asked: a person
// wants the task to continue now.
func (s *Server) ToClone(ctx context.Context, was string, p api.FolderID, asked bool) (bool, error) {
	at, err := s.Find(was, p)
	if err == nil {
		if _, gone := os.Stat(at); !os.IsNotExist(gone) || s.cloneOf(at) == "" {
			return false, nil
		}
		err = errors.New("its clone was removed")
	}
	if why := uncloned(p, s.clones.From); why != "" {
		if p.Tree != nil {
			err = fmt.Errorf("%w; %s", err, why)
		}
		return false, err
	}
	running, bad := s.running(ctx)
	if bad != nil {
		return false, bad
	}
	there := slices.ContainsFunc(running, func(g api.GroupServer) bool { return g.ID != s.id && Has(g, p) })
	if away := s.away(p.Server, there); there || !asked && away < s.clones.After {
		return false, err
	}
	return true, nil
}

// away returns for how long a server has not run, as far as this one knows.
func (s *Server) away(server string, runs bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, known := s.gone[server]
	switch {
	case runs:
		delete(s.gone, server)
	case !known:
		s.gone[server] = time.Now()
	default:
		return time.Since(since)
	}
	return 0
}

// cloneOf returns the folder of the clone that holds a path; "" = no clone does.
func (s *Server) cloneOf(root string) string {
	if s.clones.Dir == "" {
		return ""
	}
	below, err := filepath.Rel(s.clones.Dir, root)
	if err != nil || !filepath.IsLocal(below) {
		return ""
	}
	name, rest, _ := strings.Cut(filepath.ToSlash(below), "/")
	if rest != treeName && !strings.HasPrefix(rest, treeName+"/") {
		return ""
	}
	return filepath.Join(s.clones.Dir, name)
}

// storeOf returns the store that a clone's file names.
func (s *Server) storeOf(root string) string {
	dir := s.cloneOf(root)
	if dir == "" {
		return ""
	}
	if o := originOf(dir); storeNames().MatchString(o.Store) {
		return o.Store
	}
	return ""
}

// originOf returns the content of a clone's file; zero if the file cannot be read.
func originOf(dir string) (o origin) {
	data, err := inputfile.Read(filepath.Join(dir, originName))
	if err != nil || json.Unmarshal(data, &o) != nil {
		return origin{}
	}
	return o
}

// Cloned returns the clones that this server has made, with their tasks.
func (s *Server) Cloned() map[string]string {
	if s == nil || s.clones.Dir == "" {
		return nil
	}
	list, _ := os.ReadDir(s.clones.Dir) // without it nothing is known, and nothing removed
	out := map[string]string{}
	for _, d := range list {
		dir := filepath.Join(s.clones.Dir, d.Name())
		if o := originOf(dir); d.IsDir() && o.Server == s.id && o.Task != "" {
			out[dir] = o.Task
		}
	}
	return out
}

// Clone makes the work tree of a task's workspace again, and calls fill with the workspace in it before it gets its place.
// It returns the path of the workspace. undo removes the clone.
func (s *Server) Clone(ctx context.Context, task string, p api.FolderID,
	fill func(root string) error) (at string, undo func(), err error) {
	if why := uncloned(p, s.clones.From); why != "" {
		return "", nil, errors.New(why)
	}
	if p.Tree.Below != "" && !filepath.IsLocal(filepath.FromSlash(p.Tree.Below)) {
		return "", nil, fmt.Errorf("clone %s: %q is no path in it", p.Tree.Remote, p.Tree.Below)
	}
	ctx, cancel := context.WithTimeout(ctx, cloneTime)
	defer cancel()
	temp, err := os.MkdirTemp(s.clones.Dir, tempPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("clone the workspace: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := usergit.Clone(ctx, *p.Tree, filepath.Join(temp, treeName)); err != nil {
		return "", nil, err
	}
	below := filepath.FromSlash(path.Join(treeName, p.Tree.Below))
	real, err := filepath.EvalSymlinks(filepath.Join(temp, below))
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("clone %s: the commit %s has no folder %s", p.Tree.Remote, p.Tree.Commit, p.Tree.Below)
	case real != filepath.Join(temp, below):
		return "", nil, fmt.Errorf("clone %s: the folder %s is a link", p.Tree.Remote, p.Tree.Below)
	}
	if err := fill(real); err != nil {
		return "", nil, err
	}
	text, err := json.Marshal(origin{p.Tree.Store, s.id, task})
	if err == nil {
		err = atomicfile.Create(filepath.Join(temp, originName), append(text, '\n'))
	}
	if err != nil {
		return "", nil, fmt.Errorf("clone the workspace: %w", err)
	}
	dir, err := s.place(temp, task)
	if err != nil {
		return "", nil, fmt.Errorf("clone the workspace: %w", err)
	}
	return filepath.Join(dir, below), func() { _ = os.RemoveAll(dir) }, nil
}

// place renames a clone to the first free name. An older clone of the task stays: its user may have changed
// something.
func (s *Server) place(temp, task string) (string, error) {
	for n := 1; ; n++ {
		dir := filepath.Join(s.clones.Dir, task)
		if n > 1 {
			dir += fmt.Sprintf("-%d", n)
		}
		if _, err := os.Lstat(dir); err == nil {
			continue
		}
		err := atomicfile.Rename(temp, dir)
		if _, bad := os.Lstat(dir); err != nil && bad == nil && n < 1000 {
			continue // another process was first
		}
		return dir, err
	}
}
