package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
)

// The reasons why a settings file is not changed.
var (
	ErrDefined   = errors.New("the file defines a server of this name already")
	ErrUndefined = errors.New("the file defines no server of this name")
)

// WorkspaceFile returns the path of a workspace's file that defines servers; it need not exist.
func WorkspaceFile(workspace string) string {
	return filepath.Join(workspace, filepath.FromSlash(workspaceFile))
}

// Definition returns a server in the form of a settings file: one JSON object.
func (s Server) Definition() []byte {
	if s.Kind != Stdio {
		return esjson.ObjectOf("type", string(s.Kind), "url", s.URL, "headers", objectOf(s.Headers))
	}
	var args []byte
	if len(s.Args) > 0 {
		args = esjson.Strings(s.Args)
	}
	return esjson.ObjectOf("command", s.Command, "args", args, "env", objectOf(s.Env), "cwd", esjson.Given(s.Dir))
}

// objectOf returns texts as a JSON object; nil for none.
func objectOf(texts map[string]string) []byte {
	if len(texts) == 0 {
		return nil
	}
	var o esjson.Object
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		o.String(name, texts[name])
	}
	return o.Bytes()
}

// Define writes a server into the settings file s.File, and keeps every other byte of it. If the file has the name,
// the error is ErrDefined, unless replace is set. Define refuses a server that Load would not read back as usable.
func Define(s Server, replace bool) error {
	return change(s, func(data []byte) ([]byte, error) {
		if len(bytes.TrimSpace(data)) == 0 {
			data = []byte("{\n  \"mcpServers\": {\n  }\n}\n")
		}
		servers, has := esjson.Get(data, "mcpServers")
		if !has || esjson.TypeOf(servers) != esjson.TypeObject {
			data = withMember(data, "mcpServers", []byte("{}"))
			servers = []byte("{}")
		}
		if _, taken := esjson.Get(servers, s.Name); taken && !replace {
			return nil, ErrDefined
		}
		return esjson.Set(data, "mcpServers", withMember(servers, s.Name, s.Definition())), nil
	})
}

// Undefine removes a server from the settings file s.File, and keeps every other byte of it.
func Undefine(s Server) error {
	return change(s, func(data []byte) ([]byte, error) {
		servers, _ := esjson.Get(data, "mcpServers")
		if _, has := esjson.Get(servers, s.Name); !has {
			return nil, ErrUndefined
		}
		return esjson.Set(data, "mcpServers", esjson.Remove(servers, s.Name)), nil
	})
}

// change replaces the content of a settings file by the content that edit returns.
func change(s Server, edit func([]byte) ([]byte, error)) error {
	path := s.File
	if s.Scope == Workspace {
		if err := plainPlace(path); err != nil {
			return err
		}
	} else if real, err := filepath.EvalSymlinks(path); err == nil { // people may link their own settings to another place
		path = real
	}
	data, err := inputfile.Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	mark := []byte("\ufeff")
	rest, marked := bytes.CutPrefix(data, mark)
	if _, err := Parse(rest, s.Scope, s.File); err != nil {
		return fmt.Errorf("change %s: %w", path, err)
	}
	next, err := edit(rest)
	if err != nil {
		return err
	}
	after, err := Parse(next, s.Scope, s.File)
	for _, n := range after {
		if n.Name == s.Name && n.Problem != "" {
			err = errors.New(n.Problem)
		}
	}
	if err == nil && len(next) > maxFile {
		err = fmt.Errorf("it would be longer than %d bytes", maxFile)
	}
	if err != nil {
		return fmt.Errorf("change %s: %w", path, err)
	}
	if marked {
		next = append(mark, next...)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, next)
}

// plainPlace refuses a file of a workspace that is reached through a link: a repository could make the link lead
// anywhere.
func plainPlace(path string) error {
	for _, at := range []string{filepath.Dir(path), path} {
		info, err := os.Lstat(at)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("change %s: %s is a link, which Roost does not follow in a workspace", path, at)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// withMember is esjson.Set, but a new member gets its own line where the others have one.
func withMember(obj []byte, key string, val []byte) []byte {
	next := esjson.Set(obj, key, val)
	_, has := esjson.Get(obj, key)
	line := bytes.IndexByte(obj, '\n')
	if has || line < 0 {
		return next
	}
	indent := obj[line+1 : line+1+len(obj[line+1:])-len(bytes.TrimLeft(obj[line+1:], " \t"))]
	at := 0
	for at < len(obj) && obj[at] == next[at] {
		at++
	}
	out := bytes.Clone(obj[:at])
	if next[at] == ',' {
		out = append(out, ',')
	} else {
		indent = append(bytes.Clone(indent), "  "...) // the first member: the line is that of the bracket
	}
	out = append(append(out, '\n'), indent...)
	out = append(append(esjson.Quote(out, key), ": "...), val...)
	return append(out, obj[at:]...)
}
