package config

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/roofmt"
)

// KnownProvider refuses a name unless a provider that takes a key has it. what is the command without the name, for the
// suggestion in the error.
func KnownProvider(what, name string) error {
	all := setup.Providers()
	if slices.Contains(all, name) {
		return nil
	}
	f := misused(what+" "+name, "there is no provider of that name that takes a key; there are "+strings.Join(all, ", "), what+" "+all[0])
	if near := api.Nearest(name, all); near != "" {
		f.Try, f.Suggestions = what+" "+near, []string{near}
	}
	return f
}

// Keep replaces one key in the file and leaves the rest unchanged. The caller holds the lock that Locked takes, and
// has read s under it.
func (s *Secrets) Keep(name, key string) error {
	return s.rewrite(s.File.with(name, strings.IndexByte(name, '.'), Value{Text: key})) // a profile's name may have dots
}

// SetKey stores a key under a name; of is the name for people. With ring, it stores the key in the system's keyring
// and not in the file. place describes where the key is stored.
func (p Place) SetKey(ctx context.Context, name, of, key string, ring bool) (place string, err error) {
	err = p.Locked(ctx, func() error {
		s, err := p.Secrets()
		if err != nil {
			return err
		}
		place = s.Path
		if ring {
			place = RingOrigin
			err = p.ringSet(ctx, s, name, of, key)
		} else if err = s.Keep(name, key); err == nil && s.InKeyring(name) { // the newest key counts
			if failed := p.ringRemove(ctx, s, name, of); failed != nil {
				p.warn("an older key stays in the system's keyring, and is no longer used: " + failed.Error())
				err = s.rewrite(s.File.Without(KeyringMark(name)))
			}
		}
		if err != nil {
			return err
		}
		if v := p.KeyVariable(name); v != "" {
			p.warn(v + " is set and overrides it")
		}
		return nil
	})
	return place, err
}

// RemoveKey deletes the key that is stored under a name; of is the name for people.
func (p Place) RemoveKey(ctx context.Context, name, of string) error {
	return p.Locked(ctx, func() error {
		s, err := p.Secrets()
		if err != nil {
			return err
		}
		ring := s.InKeyring(name)
		if ring {
			if err := p.ringRemove(ctx, s, name, of); err != nil {
				return err
			}
		}
		if s.Key(name) == "" && !ring {
			f := missing("not_set", "delete the key for "+of, "none is kept in "+s.Path, "roost auth status")
			if v := p.KeyVariable(name); v != "" {
				f.Why, f.Try = f.Why+"; there is one in "+v, "unset "+v
			}
			return f
		}
		if err := s.rewrite(s.File.Without(name)); err != nil {
			return err
		}
		if v := p.KeyVariable(name); v != "" {
			p.warn(v + " is set and still holds one")
		}
		return nil
	})
}

// Storage describes the tasks of another tool in a folder.
type Storage struct {
	Tool  string
	Shape string // of the folder: a storage, its tasks folder, or one task
	Tasks int
}

// AddSource adds a folder to the setting sources. Roost still finds the sources that it found without the setting.
// added is false when the folder is a source already.
func (p Place) AddSource(ctx context.Context, dir string) (found Storage, added bool, err error) {
	what := "read the tasks of " + dir
	if strings.Contains(dir, ",") || strings.TrimSpace(dir) != dir {
		return found, false, misused(what,
			"the setting separates folders with commas, so a folder's name cannot contain a comma, nor begin or end with a blank",
			"roost sources add LINK, with a symbolic link to it")
	}
	held, err := roofmt.Find(ctx, dir)
	if err != nil {
		return found, false, missing("source_unreachable", what, err.Error(), "roost sources")
	}
	found = Storage{Tool: string(held.Tool), Shape: held.Shape.String(), Tasks: len(held.Tasks)}
	err = p.Locked(ctx, func() error {
		named, err := p.NamedSources()
		if err != nil || slices.ContainsFunc(named, p.isFolder(dir)) {
			return err
		}
		if len(named) == 0 {
			named = []string{"auto"} // as without the setting
		}
		named = slices.DeleteFunc(named, func(n string) bool { return n == "none" })
		added = true
		return p.set("sources", []string{strings.Join(append(named, dir), ",")})
	})
	return found, added, err
}

// NamedSources returns the entries of the setting sources in the file.
func (p Place) NamedSources() ([]string, error) {
	_, file, err := p.File()
	if err != nil {
		return nil, err
	}
	if e, ok := file.Get("sources"); ok {
		return List(e.Value.Text), nil
	}
	return nil, nil
}

// isFolder returns a test for the entries of the setting sources: whether one names dir.
func (p Place) isFolder(dir string) func(string) bool {
	return func(word string) bool {
		return word == dir || p.Abs(word) == dir && (filepath.IsAbs(word) || strings.HasPrefix(word, "~/"))
	}
}

// RemoveSource removes a folder from the setting sources, even one that no longer exists.
func (p Place) RemoveSource(ctx context.Context, dir string) error {
	return p.Locked(ctx, func() error {
		named, err := p.NamedSources()
		if err != nil {
			return err
		}
		rest := slices.DeleteFunc(slices.Clone(named), p.isFolder(dir))
		if len(rest) == len(named) {
			f := missing("not_found", "remove the source "+dir,
				"the setting sources does not name it; to leave out a source that Roost finds, name the others",
				"roost config set sources DIR,...")
			f.Suggestions = api.Some(named, func(word string) (string, bool) {
				return "roost sources remove " + api.ShellWord(word), word != "auto" && word != "none"
			})
			return f
		}
		value := []string{strings.Join(rest, ",")}
		switch {
		case len(rest) == 0: // the folder was the only source: the user did not want those that Roost finds
			value = []string{"none"}
		case len(rest) == 1 && rest[0] == "auto": // as without the setting
			value = nil
		}
		return p.set("sources", value)
	})
}

// AddServer defines an MCP server in a file: that of a workspace or the user's own, as s names them.
func (p Place) AddServer(ctx context.Context, s mcp.Server, n api.NewMCPServer) (mcp.Server, error) {
	const try = "roost mcp add NAME -- COMMAND ARGS...  # or --url URL"
	what := "add the MCP server " + n.Name
	switch {
	case (n.URL == "") == (n.Command == ""):
		return s, misused(what, "it needs either a command or --url", try)
	case n.URL == "" && (len(n.Headers) > 0 || n.SSE):
		return s, misused(what, "--header and --sse are for a server with --url", try)
	case n.URL != "" && (len(n.Env) > 0 || n.Dir != ""):
		return s, misused(what, "--env and --cwd are for a server with a command", try)
	}
	s.Name = n.Name
	if n.URL == "" {
		s.Kind, s.Command, s.Args, s.Dir, s.Env = mcp.Stdio, n.Command, n.Args, n.Dir, n.Env
	} else {
		s.Kind, s.URL, s.Headers = mcp.HTTP, n.URL, n.Headers
		if n.SSE {
			s.Kind = mcp.SSE
		}
	}
	return s, p.Locked(ctx, func() error {
		switch err := mcp.Define(s, n.Replace); {
		case errors.Is(err, mcp.ErrDefined):
			return &Error{
				Taken, "already_there", what, s.File + " has a server of this name",
				"roost mcp add --force " + api.ShellWord(n.Name) + " ...", nil,
			}
		case err != nil:
			return broken(what, err.Error(), "roost mcp list")
		}
		return nil
	})
}

// RemoveServer removes an MCP server from the file that s names, and deletes the log-in to it. others are the servers
// that count for a workspace: if one of them has the name, the error names its file.
func (p Place) RemoveServer(ctx context.Context, s mcp.Server, logins mcp.Logins, workspace string, others []mcp.Server) error {
	if err := p.Locked(ctx, func() error { return undefine(s, workspace, others) }); err != nil {
		return err
	}
	if err := logins.Forget(ctx, s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.warn("its log-in is still kept: " + err.Error())
	}
	return nil
}

// undefine removes an MCP server from its file, under the lock.
func undefine(s mcp.Server, workspace string, others []mcp.Server) error {
	what := "remove the MCP server " + s.Name
	switch err := mcp.Undefine(s); {
	case errors.Is(err, mcp.ErrUndefined):
		f := missing("not_found", what, s.File+" has no server of this name", "roost mcp list -C "+api.ShellWord(workspace))
		for _, o := range others {
			if o.Name == s.Name && o.Scope == mcp.Workspace && s.Scope != mcp.Workspace {
				f.Why, f.Try = "it is in "+o.File, "roost mcp remove --project "+api.ShellWord(s.Name)
			} else if o.Name == s.Name && o.Scope == mcp.Editor {
				f.Why, f.Try = "it is in "+o.File+", which an editor owns", "roost mcp deny "+api.ShellWord(s.Name)
			}
		}
		return f
	case err != nil:
		return broken(what, err.Error(), "roost mcp list")
	}
	return nil
}
