// Package mcp connects a task to MCP servers: it finds the servers, checks which of them the user has agreed to, and
// calls them.
//
// Settings are Roo's: a JSON file with `mcpServers`, one in the workspace (`.roo/mcp.json`), the user's own next to
// Roost's settings, and those of editors. The first file that defines a name counts, in this order. A definition that
// a repository or another tool wrote starts nothing by itself: the user agrees to each one once (Choices); the
// agreement holds for a hash of all that the definition runs, sends or may do without asking. The hash covers the
// command line, not the content of the program that it names.
//
// A Hub has the connections of one run. It opens them in parallel within a time limit. The tools that the servers
// offer then stay the same until the run ends: a changed list of tools would invalidate the provider's cache. If a
// server cannot be reached, the call that needs it fails. A call whose connection was already dead connects once
// more; a call whose connection dies while it runs is not repeated, because it may have taken effect.
//
// All processes of a task's servers carry one mark, the same in every run: the next run ends the processes that a
// killed run left. They end when their stdin closes, and on Linux by SIGTERM when Roost dies.
//
// Texts of servers are not trusted: they are bounded and lose their control characters. A schema that a provider
// would refuse is repaired, or its tool is left out.
//
// A person may log in to a server on the web by OAuth (Logins). A run uses and renews the tokens; only Login starts a
// log-in. A token goes only to the server that it was made for.
//
// Limits: servers get no roots, no sampling and no questions to the user. The protocol version is 2025-11-25, which
// old and new servers know; the newer version's greeting makes some of them close the connection.
package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/redact"
)

// Kind is the way in which a server is reached.
type Kind string

// The kinds of servers.
const (
	Stdio Kind = "stdio"
	HTTP  Kind = "streamable-http"
	SSE   Kind = "sse"
)

// Scope is the owner of the file that holds a definition.
type Scope string

// The scopes of definitions.
const (
	Workspace Scope = "workspace"
	Own       Scope = "own"
	Editor    Scope = "editor"
)

// State decides whether a server is used.
type State string

// The states of servers.
const (
	Allowed    State = "allowed"
	NotAllowed State = "not allowed" // the user has not agreed to it, or not to its present version
	Denied     State = "denied"
	Disabled   State = "disabled" // its own definition disables it
	Invalid    State = "invalid"
)

// Bounds of a call.
const (
	DefaultTimeout = 60 * time.Second
	maxTimeout     = 3600 * time.Second
)

// Server is the definition of a server as it was written: variables are not yet replaced.
type Server struct {
	Name  string `json:"-"`
	Scope Scope  `json:"-"`
	File  string `json:"-"` // the file that defines it, absolute
	Kind  Kind   `json:"-"`

	Command string            `json:"command"` // with stdio
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"cwd"` // relative to the workspace; "" = the workspace

	URL     string            `json:"url"` // with HTTP
	Headers map[string]string `json:"headers"`

	Disabled bool          `json:"disabled"`
	Always   []string      `json:"alwaysAllow"`   // tools that run without asking
	Off      []string      `json:"disabledTools"` // tools that are not offered
	Timeout  time.Duration `json:"-"`

	State   State  `json:"-"`
	Problem string `json:"-"` // why it is invalid
}

// authorized reports whether a definition brings its own Authorization header.
func (s Server) authorized() bool {
	names := slices.Collect(maps.Keys(s.Headers))
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, "Authorization") })
}

// Hash returns a hash of everything in a definition that the user agrees to: what it runs or contacts, with which
// settings, and what it may do without asking.
func (s Server) Hash() string {
	// Maps are written in the order of their keys.
	b, err := json.Marshal([]any{s.Kind, s.Command, s.Args, s.Env, s.Dir, s.URL, s.Headers, s.Always})
	if err != nil {
		return "" // impossible for strings; no decision has this hash
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Line describes for the user what a server runs or contacts: with variables as written, without the parts of an
// address that hold keys, and with masks over texts in a command line that look like keys.
func (s Server) Line() string {
	if s.Kind != Stdio {
		return Address(s.URL)
	}
	line, _ := keys().String(strings.Join(append([]string{s.Command}, s.Args...), " "))
	return line
}

var keys = sync.OnceValue(func() *redact.Redactor { return redact.New() })

// Address returns a URL without user, query and fragment, and without parts of its path that are as long as a key:
// some services put keys there.
func Address(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "(no address)"
	}
	parts := strings.Split(u.Path, "/")
	for i, part := range parts {
		if len(part) >= longPart && !strings.Contains(part, "${") {
			parts[i] = "..."
		}
	}
	tail := ""
	if u.RawQuery != "" {
		tail = "?..."
	}
	return u.Scheme + "://" + u.Host + strings.Join(parts, "/") + tail
}

// longPart is the length in bytes from which a part of a path may be a key.
const longPart = 20

// keysOf returns the parts of a URL that Address leaves out, both escaped and unescaped.
func keysOf(raw string) (list []string) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil
	}
	if password, ok := u.User.Password(); ok {
		list = append(list, password)
	}
	for _, part := range strings.Split(u.RawQuery, "&") {
		if _, value, ok := strings.Cut(part, "="); ok {
			meant, err := url.QueryUnescape(value)
			if list = append(list, value); err == nil && meant != value {
				list = append(list, meant)
			}
		}
	}
	list = append(list, api.Some(strings.Split(u.Path, "/"), func(part string) (string, bool) {
		return part, len(part) >= longPart
	})...)
	return list
}

// variables matches Roo's: ${env:NAME}, and ${workspaceFolder}.
var variables = lazyregexp.New(`\$\{(env:[^}]*|workspaceFolder)\}`)

// expanded returns the definition with its variables replaced. An unset variable is an error: a server with an
// incomplete key would only fail later.
func (s Server) expanded(workspace string, env func(string) string) (Server, error) {
	var missing []string
	fill := func(text string) string {
		return variables().ReplaceAllStringFunc(text, func(v string) string {
			name, isEnv := strings.CutPrefix(v[2:len(v)-1], "env:")
			if !isEnv {
				return workspace
			}
			value := env(name)
			if value == "" && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
			return value
		})
	}
	fillAll := func(m map[string]string) map[string]string {
		out := make(map[string]string, len(m))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			out[k] = fill(m[k])
		}
		return out
	}
	s.Command, s.Dir, s.URL = fill(s.Command), fill(s.Dir), fill(s.URL)
	s.Args = api.Each(s.Args, fill)
	s.Env, s.Headers = fillAll(s.Env), fillAll(s.Headers)
	if len(missing) > 0 {
		return s, fmt.Errorf("the variable %s is not set", strings.Join(missing, ", "))
	}
	if s.Dir == "" {
		s.Dir = workspace
	} else if !filepath.IsAbs(s.Dir) {
		s.Dir = filepath.Join(workspace, s.Dir)
	}
	return s, nil
}

// inherited are the variables that a server gets from Roost's environment. A server is another author's program: it
// gets other variables, tokens among them, only if its definition names them.
var inherited = []string{
	"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "NVM_DIR", "PYENV_ROOT",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"NODE_EXTRA_CA_CERTS",
}

var inheritedWindows = []string{
	"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES",
	"PROGRAMFILES(X86)",
	"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR", "COMSPEC",
}

// environment returns the environment of a server's process, the definition's own variables last.
func (s Server) environment(env func(string) string) []string {
	names := inherited
	if runtime.GOOS == "windows" {
		names = append(slices.Clone(inherited), inheritedWindows...)
	}
	out := api.Some(names, func(name string) (string, bool) {
		_, own := s.Env[name]
		return name + "=" + env(name), !own && env(name) != ""
	})
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		out = append(out, name+"="+s.Env[name])
	}
	return out
}

var (
	secretName  = lazyregexp.New(`(?i)key|token|secret|passw|credential|auth|cookie|session|_pat$|^pat$|_dsn$|private`)
	plainHeader = lazyregexp.New(`(?i)^(accept.*|content-.*|user-agent|host|origin|referer|mcp-.*|cache-control)$`)
)

// Secrets returns the values in the definitions that must never be shown: those of headers, of variables with the
// names of secrets, and the keys in addresses. Other values stay visible: masking a folder or a word like
// "production" everywhere would blind the model.
func Secrets(servers []Server, workspace string, env func(string) string) []redact.Known {
	var out []redact.Known
	add := func(kind, value string) {
		if value = strings.TrimSpace(value); value != "" {
			out = append(out, redact.Known{Kind: kind, Value: value})
		}
	}
	for _, s := range servers {
		s, _ = s.expanded(workspace, env) // a missing variable holds no secret
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			if secretName().MatchString(name) {
				add("mcp-env", s.Env[name])
			}
		}
		for _, part := range keysOf(s.URL) {
			add("mcp-url", part)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
			if plainHeader().MatchString(name) {
				continue
			}
			add("mcp-header", s.Headers[name])
			if _, value, two := strings.Cut(s.Headers[name], " "); two { // "Bearer ..."
				add("mcp-header", value)
			}
		}
	}
	return out
}

// maxTool is the longest name, in bytes, that all providers accept.
const maxTool = 64

var (
	foreign = lazyregexp.New(`[^A-Za-z0-9_-]`)
	dashes  = lazyregexp.New(`--+`)
)

// Sanitise makes a name fit for providers as Roo does: blanks become "_", and characters
// other than letters, digits, "_" and "-" are removed. Repeated dashes are removed too,
// because two of them separate a tool's name from its server's. The result begins with a
// letter or "_".
func Sanitise(name string) string {
	name = strings.ReplaceAll(name, " ", "_")
	name = dashes().ReplaceAllString(foreign().ReplaceAllString(name, ""), "-")
	if name == "" || !(name[0] == '_' || 'a' <= name[0] && name[0] <= 'z' || 'A' <= name[0] && name[0] <= 'Z') {
		name = "_" + name
	}
	return name
}

// ToolName returns the name by which a model calls a server's tool. A name that is too long is cut, and ends in a
// hash of the whole name.
func ToolName(server, tool string) string {
	name := "mcp--" + Sanitise(server) + "--" + Sanitise(tool)
	if len(name) > maxTool {
		sum := sha256.Sum256([]byte(name))
		name = name[:maxTool-9] + "_" + hex.EncodeToString(sum[:4])
	}
	return name
}

// Canonical returns the name under which a tool is offered, for a name that may have "__" in place of "--". ok
// reports whether it is the name of a server's tool at all.
func Canonical(name string) (canonical string, ok bool) {
	if strings.HasPrefix(name, "mcp--") {
		return name, true
	}
	server, found := strings.CutPrefix(name, "mcp__")
	if !found {
		return name, false
	}
	server, tool, found := strings.Cut(server, "__")
	return "mcp--" + server + "--" + tool, found
}

// workspaceFile is the file in which a workspace keeps its servers.
const workspaceFile = ".roo/mcp.json"

// Files lists the files that define servers. The workspace's own file comes before them and is not listed here. No
// file need exist.
type Files struct {
	Own     string   // the user's file; its servers need no agreement. "" = none
	Editors []string // Roo's mcp_settings.json, the first one first
	Choices Choices  // the user's decisions about the other servers
	Logins  Logins   // the user's log-ins
}

// Load returns the servers for a task in a workspace, by name, with their states, and a description of each file that
// could not be read.
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

// readWorkspace reads the workspace's file. It refuses a link that leads out of the workspace.
func readWorkspace(workspace, path string) ([]Server, error) {
	root, err := inputfile.OpenDir(workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	return readFile(inputfile.FS(root), workspaceFile, Workspace, path)
}

// Bounds of a settings file.
const (
	maxFile    = 1 << 20
	maxServers = 100
	maxName    = 100
)

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
	var d struct {
		Type    string   `json:"type"`
		Timeout *float64 `json:"timeout"` // seconds
	}
	s := Server{Timeout: DefaultTimeout}
	if err := errors.Join(json.Unmarshal(raw, &d), json.Unmarshal(raw, &s)); err != nil {
		return Server{Timeout: DefaultTimeout, Problem: "its definition cannot be read: " + err.Error()}
	}
	switch t := strings.ToLower(d.Type); {
	case t == "stdio", t == "" && s.Command != "":
		s.Kind = Stdio
	case t == "streamable-http", t == "streamablehttp", t == "http", t == "" && s.URL != "":
		s.Kind = HTTP
	case t == "sse":
		s.Kind = SSE
	case t == "":
		s.Problem = "it has neither a command nor a url"
	default:
		s.Problem = fmt.Sprintf("its type is %q; there are stdio, streamable-http and sse", d.Type)
	}
	if d.Timeout != nil {
		if *d.Timeout < 1 || *d.Timeout > maxTimeout.Seconds() {
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
	return name != "" && len(name) <= maxName && redact.Terminal(name) == name && !strings.ContainsAny(name, "\t\n")
}

// shown returns a server's text as it can be shown, cut to at most most bytes.
func shown(text string, most int) string { return api.Shorten(redact.Terminal(text), most) }

// readFile reads a settings file; a missing file is no error.
func readFile(fsys fs.FS, name string, scope Scope, path string) ([]Server, error) {
	data, err := inputfile.ReadFS(fsys, name, maxFile+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("it cannot be read: %w", err)
	case len(data) > maxFile:
		return nil, fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	return Parse(data, scope, path)
}

// Choices is a folder with the user's decisions about definitions that others wrote. Each has its own file, so that
// two programs that write at once lose nothing.
type Choices struct {
	Dir string // "" = no decisions
}

// choice is the decision about one definition. Consent holds for the present definition only, a refusal also for
// every later version.
type choice struct {
	File    string `json:"file"`
	Name    string `json:"name"`
	Hash    string `json:"sha256"`
	Allowed bool   `json:"allowed"`
	Line    string `json:"line"` // for people who open the file
}

func (c Choices) path(s Server) string { return s.fileIn(c.Dir) }

// fileIn returns the path of this definition's file in a folder with one file per definition.
func (s Server) fileIn(dir string) string {
	sum := sha256.Sum256([]byte(s.File + "\x00" + s.Name))
	return filepath.Join(dir, hex.EncodeToString(sum[:16])+".json")
}

// state returns the state of a server. An unreadable decision is no agreement.
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
		err = errors.New("the recorded decision is about another server")
	}
	return decision, err
}

// Set records the user's decision about a server's present definition.
func (c Choices) Set(s Server, allowed bool) error {
	data, err := json.MarshalIndent(choice{File: s.File, Name: s.Name, Hash: s.Hash(), Allowed: allowed, Line: s.Line()}, "", "  ")
	if err != nil {
		return fmt.Errorf("record the decision about the MCP server %s: %w", s.Name, err)
	}
	if err = os.MkdirAll(c.Dir, 0o700); err == nil {
		err = atomicfile.Write(c.path(s), append(data, '\n'))
	}
	return api.Failed(err, "record the decision about the MCP server %s in %s", s.Name, c.Dir)
}
