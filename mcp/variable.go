package mcp

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/roost-dev/roost/redact"
)

// variables are Roo's: ${env:NAME}, and ${workspaceFolder}.
var variables = regexp.MustCompile(`\$\{(env:[^}]*|workspaceFolder)\}`)

// expanded is the definition with its variables replaced. A variable that is not set is
// an error: a server with an incomplete key would only fail later.
func (s Server) expanded(workspace string, env func(string) string) (Server, error) {
	var missing []string
	fill := func(text string) string {
		return variables.ReplaceAllStringFunc(text, func(v string) string {
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
	s.Args = slices.Clone(s.Args)
	for i, arg := range s.Args {
		s.Args[i] = fill(arg)
	}
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

// inherited are the variables that a server gets from our environment. A server is another
// author's program: it gets other variables, tokens among them, only when its definition
// names them.
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

// environment is the environment of a server's process, the definition's own variables last.
func (s Server) environment(env func(string) string) []string {
	names := inherited
	if runtime.GOOS == "windows" {
		names = append(slices.Clone(inherited), inheritedWindows...)
	}
	var out []string
	for _, name := range names {
		if _, own := s.Env[name]; !own && env(name) != "" {
			out = append(out, name+"="+env(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		out = append(out, name+"="+s.Env[name])
	}
	return out
}

var (
	secretName  = regexp.MustCompile(`(?i)key|token|secret|passw|credential|auth|cookie|session|_pat$|^pat$|_dsn$|private`)
	plainHeader = regexp.MustCompile(`(?i)^(accept.*|content-.*|user-agent|host|origin|referer|mcp-.*|cache-control)$`)
)

// Secrets are the values in the definitions that must never be shown: those of headers, of
// variables with the names of secrets, and the keys in addresses. Others stay: masking a
// folder or a word like "production" everywhere would blind the model.
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
			if secretName.MatchString(name) {
				add("mcp-env", s.Env[name])
			}
		}
		for _, part := range keysOf(s.URL) {
			add("mcp-url", part)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
			if plainHeader.MatchString(name) {
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
