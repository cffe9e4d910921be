package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

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
