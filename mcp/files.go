package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/atomicfile"
)

// workspaceFile is where a workspace keeps its servers.
const workspaceFile = ".roo/mcp.json"

// Files are the files that define servers. The workspace's own comes first and is not
// listed here. None of them need exist.
type Files struct {
	Own     string   // the user's; its servers need no agreement. "" = none
	Editors []string // Roo's mcp_settings.json, the first one first
	Choices Choices  // the user's decisions about the others
}

// Load returns the servers that a task in a workspace has, by name, with their states,
// and a description of each file that could not be read.
func (p Files) Load(workspace string) (servers []Server, problems []string) {
	taken := map[string]bool{}
	add := func(path string, list []Server, err error) {
		if err != nil {
			problems = append(problems, path+": "+err.Error())
		}
		for _, s := range list {
			if !taken[s.Name] {
				taken[s.Name] = true
				s.State = p.Choices.state(s)
				servers = append(servers, s)
			}
		}
	}
	path := filepath.Join(workspace, filepath.FromSlash(workspaceFile))
	list, err := readWorkspace(workspace, path)
	add(path, list, err)
	for i, path := range append([]string{p.Own}, p.Editors...) {
		if path == "" {
			continue
		}
		scope := Own
		if i > 0 {
			scope = Editor
		}
		list, err := readFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), scope, path)
		add(path, list, err)
	}
	slices.SortFunc(servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return servers, problems
}

// readWorkspace reads the workspace's file and follows no link that leads out of it.
func readWorkspace(workspace, path string) ([]Server, error) {
	root, err := os.OpenRoot(workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	return readFile(root.FS(), workspaceFile, Workspace, path)
}

// Bounds of a settings file.
const (
	maxFile    = 1 << 20
	maxServers = 100
	maxName    = 100
)

// definition is a server as written in the file.
type definition struct {
	Type        string            `json:"type"`
	Command     string            `json:"command"`
	Args        []string          `json:"args"`
	Env         map[string]string `json:"env"`
	Cwd         string            `json:"cwd"`
	URL         string            `json:"url"`
	Headers     map[string]string `json:"headers"`
	Disabled    bool              `json:"disabled"`
	AlwaysAllow []string          `json:"alwaysAllow"`
	Off         []string          `json:"disabledTools"`
	Timeout     *float64          `json:"timeout"` // seconds
}

// Parse reads a settings file's servers, in the order of their names. A server that cannot
// be used is Invalid and has its Problem; the others are not affected.
func Parse(data []byte, scope Scope, path string) ([]Server, error) {
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil // Roo's file before the first server is added
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if len(file.Servers) > maxServers {
		return nil, fmt.Errorf("it names %d servers, more than %d", len(file.Servers), maxServers)
	}
	var out []Server
	for name, raw := range file.Servers {
		s := parseServer(raw)
		s.Name, s.Scope, s.File = name, scope, path
		if s.Problem == "" && !isPlainName(name) {
			s.Problem = "its name is empty, too long, or holds characters that cannot be shown"
		}
		if s.Problem != "" {
			s.State = Invalid
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func parseServer(raw json.RawMessage) Server {
	var d definition
	s := Server{Timeout: DefaultTimeout}
	if err := json.Unmarshal(raw, &d); err != nil {
		s.Problem = "its definition cannot be read: " + err.Error()
		return s
	}
	s.Command, s.Args, s.Env, s.Dir, s.URL, s.Headers = d.Command, d.Args, d.Env, d.Cwd, d.URL, d.Headers
	s.Disabled, s.Always, s.Off = d.Disabled, d.AlwaysAllow, d.Off
	switch t := strings.ToLower(d.Type); {
	case t == "stdio", t == "" && d.Command != "":
		s.Kind = Stdio
	case t == "streamable-http", t == "streamablehttp", t == "http", t == "" && d.URL != "":
		s.Kind = HTTP
	case t == "sse":
		s.Kind = SSE
	case t == "":
		s.Problem = "it has neither a command nor a url"
	default:
		s.Problem = fmt.Sprintf("its type is %q; there are stdio, streamable-http and sse", d.Type)
	}
	if d.Timeout != nil {
		if *d.Timeout < 1 || *d.Timeout > maxTimeout.Seconds() || math.IsNaN(*d.Timeout) {
			s.Problem = "its timeout is in seconds, from 1 to 3600"
			return s
		}
		s.Timeout = time.Duration(*d.Timeout * float64(time.Second))
	}
	if s.Problem == "" {
		s.Problem = s.findProblem()
	}
	return s
}

func (s Server) findProblem() string {
	if s.Kind == Stdio {
		switch {
		case strings.TrimSpace(s.Command) == "":
			return "it has no command"
		case s.URL != "":
			return "it has a command and a url"
		case slices.ContainsFunc(append([]string{s.Command, s.Dir}, s.Args...), func(t string) bool { return strings.ContainsRune(t, 0) }):
			return "its command line holds a zero byte"
		}
		for k, v := range s.Env {
			if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
				return "its env has a name or value that no environment variable can have"
			}
		}
		return ""
	}
	if s.Command != "" {
		return "it has a command and a url"
	}
	if u, err := url.Parse(s.URL); !strings.Contains(s.URL, "${") &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return "its url is no http or https address"
	}
	return ""
}

func isPlainName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029
	})
}

// readFile reads a settings file that need not exist.
func readFile(fsys fs.FS, name string, scope Scope, path string) ([]Server, error) {
	if info, err := fs.Stat(fsys, name); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file") // opening a pipe would block
	}
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("it cannot be opened: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is not a regular file"), err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it cannot be read: %w", err)
	case len(data) > maxFile:
		return nil, fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	return Parse(data, scope, path)
}

// Choices is a folder with the user's decisions about definitions that others wrote, one
// file each, so that two programs that write at once lose nothing of each other.
type Choices struct {
	Dir string // "" = no decisions
}

// choice is the decision about one definition. A yes holds for the definition as it is now,
// a no for every later version too.
type choice struct {
	File    string `json:"file"`
	Name    string `json:"name"`
	Hash    string `json:"sha256"`
	Allowed bool   `json:"allowed"`
	Line    string `json:"line"` // for people who open the file
}

func (c Choices) path(s Server) string {
	sum := sha256.Sum256([]byte(s.File + "\x00" + s.Name))
	return filepath.Join(c.Dir, hex.EncodeToString(sum[:16])+".json")
}

// state is the state of a server. A decision that cannot be read is no agreement.
func (c Choices) state(s Server) State {
	decision, err := c.read(s)
	switch {
	case s.Problem != "":
		return Invalid
	case err == nil && !decision.Allowed:
		return Denied
	case s.Disabled:
		return Disabled
	case s.Scope == Own && (err == nil || errors.Is(err, fs.ErrNotExist)):
		return Allowed
	case err == nil && decision.Hash == s.Hash() && decision.Hash != "":
		return Allowed
	}
	return NotAllowed
}

func (c Choices) read(s Server) (decision choice, err error) {
	if c.Dir == "" {
		return decision, fs.ErrNotExist
	}
	data, err := os.ReadFile(c.path(s))
	if err != nil {
		return decision, err
	}
	err = json.Unmarshal(data, &decision)
	if err == nil && (decision.File != s.File || decision.Name != s.Name) {
		err = errors.New("it is about another server")
	}
	return decision, err
}

// Set records the user's decision about a server as it is now.
func (c Choices) Set(s Server, allowed bool) error {
	data, err := json.MarshalIndent(choice{File: s.File, Name: s.Name, Hash: s.Hash(), Allowed: allowed, Line: s.Line()}, "", "  ")
	if err != nil {
		return fmt.Errorf("record the decision about the MCP server %s: %w", s.Name, err)
	}
	if err := c.write(c.path(s), append(data, '\n')); err != nil {
		return fmt.Errorf("record the decision about the MCP server %s in %s: %w", s.Name, c.Dir, err)
	}
	return nil
}

func (c Choices) write(path string, data []byte) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}
