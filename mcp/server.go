package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/redact"
)

// Kind is how a server is reached.
type Kind string

// The kinds.
const (
	Stdio Kind = "stdio"
	HTTP  Kind = "streamable-http"
	SSE   Kind = "sse"
)

// Scope is the owner of the file that holds a definition.
type Scope string

// The scopes.
const (
	Workspace Scope = "workspace"
	Own       Scope = "own"
	Editor    Scope = "editor"
)

// State is whether a server is used.
type State string

// The states.
const (
	Allowed    State = "allowed"
	NotAllowed State = "not allowed" // the user has not agreed to it, or not to its present version
	Denied     State = "denied"
	Disabled   State = "disabled" // by its own definition
	Invalid    State = "invalid"
)

// Bounds of a call.
const (
	DefaultTimeout = 60 * time.Second
	maxTimeout     = 3600 * time.Second
)

// Server is the definition of a server as it was written: variables are not yet replaced.
type Server struct {
	Name  string
	Scope Scope
	File  string // the file that defines it, absolute
	Kind  Kind

	Command string // stdio
	Args    []string
	Env     map[string]string
	Dir     string // relative to the workspace; "" = the workspace

	URL     string // the others
	Headers map[string]string

	Disabled bool
	Always   []string // tools that run unasked
	Off      []string // tools that are not offered
	Timeout  time.Duration

	State   State
	Problem string // why it is invalid
}

// Hash covers everything in a definition that the user agrees to: what it runs or contacts,
// with which settings, and what it may do unasked.
func (s Server) Hash() string {
	// Maps are written in the order of their keys.
	b, err := json.Marshal([]any{s.Kind, s.Command, s.Args, s.Env, s.Dir, s.URL, s.Headers, s.Always})
	if err != nil {
		return "" // impossible for strings; no decision has this hash
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Line is what a server runs or contacts, for the user: with variables as they were
// written, without the parts of an address that hold keys, and with masks over texts in a
// command line that look like keys.
func (s Server) Line() string {
	if s.Kind != Stdio {
		return Address(s.URL)
	}
	line, _ := keys().String(strings.Join(append([]string{s.Command}, s.Args...), " "))
	return line
}

var keys = sync.OnceValue(func() *redact.Redactor { return redact.New() })

// Address is a URL without user, query and fragment, and without parts of its path
// that are as long as a key: some services put their keys there.
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

// keysOf are the parts of a URL that Address leaves out, both escaped and unescaped.
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
	for _, part := range strings.Split(u.Path, "/") {
		if len(part) >= longPart {
			list = append(list, part)
		}
	}
	return list
}
