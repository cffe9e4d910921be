//go:build unix

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/mcp"
)

// asked is what a provider was asked with.
type asked struct{ key, model, path string }

// provider refuses every request and notes what it was.
func provider(t *testing.T, status int, kind string) (url string, seen func() []asked) {
	t.Helper()
	var mu sync.Mutex
	var all []asked
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct{ Model string }
		_ = json.Unmarshal(body, &request)
		mu.Lock()
		all = append(all, asked{r.Header.Get("X-Api-Key"), request.Model, r.URL.Path})
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"`+kind+`","message":"no"}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []asked { mu.Lock(); defer mu.Unlock(); return all }
}

// Key, address and model of the file reach the provider; a variable wins over the
// file; a key is in no output.
func TestKeysAndAddressesOfTheFile(t *testing.T) {
	t.Parallel()
	url, seen := provider(t, http.StatusUnauthorized, "authentication_error")
	s := newSandbox(t)
	for key, value := range map[string]string{
		"provider": "anthropic", "model": "claude-sonnet-4-5", "providers.anthropic.api_key": "sk-of-the-file", "providers.anthropic.base_url": url,
	} {
		if r := s.roost("config", "set", key, value); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	run := func(want asked, args ...string) {
		t.Helper()
		before := len(seen())
		r := s.roost(append([]string{"run", "hello"}, args...)...)
		got := seen()
		if len(got) <= before || got[before] != want {
			t.Errorf("%v: asked with %+v, want %+v\n%s", args, got[before:], want, r.err)
		}
		if r.code != failure.ExitConfig || strings.Contains(r.err+r.out, "sk-of") {
			t.Errorf("%v: exit %d, or a key in the output:\n%s%s", args, r.code, r.out, r.err)
		}
	}
	run(asked{"sk-of-the-file", "claude-sonnet-4-5", "/v1/messages"})
	run(asked{"sk-of-the-file", "claude-opus-4-1", "/v1/messages"}, "--model", "claude-opus-4-1")
	run(asked{"sk-of-the-file", "claude-sonnet-4-5", "/other/v1/messages"}, "--base-url", url+"/other")
	s.env("ANTHROPIC_API_KEY=sk-of-the-variable", "ROOST_MODEL=claude-haiku-4-5")
	run(asked{"sk-of-the-variable", "claude-haiku-4-5", "/v1/messages"})
	s.env("ROOST_BASE_URL=" + url + "/mine")
	run(asked{"sk-of-the-variable", "claude-haiku-4-5", "/mine/v1/messages"})
	data, err := os.ReadFile(filepath.Join(s.dir, "home", ".config", "roost", "config.toml"))
	if err != nil || !strings.Contains(string(data), `api_key = "sk-of-the-file"`) {
		t.Errorf("the file: %v\n%s", err, data)
	}
}

// A provider that refuses for good ends the run as failed by the provider.
func TestRefusedRequest(t *testing.T) {
	t.Parallel()
	url, seen := provider(t, http.StatusBadRequest, "invalid_request_error")
	s := newSandbox(t)
	s.env("ANTHROPIC_API_KEY=sk-x", "ANTHROPIC_BASE_URL="+url)
	r := s.roost("--json", "run", "hello")
	if r.code != failure.ExitProvider || len(seen()) != 1 {
		t.Errorf("exit %d after %d requests\n%s", r.code, len(seen()), r.err)
	}
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var last struct{ Type, Outcome string }
	must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	if last.Type != "run.ended" || last.Outcome != "failed" {
		t.Errorf("the last event: %s", lines[len(lines)-1])
	}
}

func TestEngineConfig(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	tests := []struct {
		name, file string
		env        []string
		want       setup.Config
	}{
		{"nothing is set", "", nil, setup.Config{}},
		{"a key names its provider, with its default model", "", []string{"ANTHROPIC_API_KEY=k"},
			setup.Config{Provider: "anthropic", Model: "*", Keys: map[string]string{"anthropic": "k"}}},
		{"so does one of the file", "[providers.anthropic]\napi_key = \"f\"\nbase_url = \"http://f\"", nil,
			setup.Config{Provider: "anthropic", Model: "*", Keys: map[string]string{"anthropic": "f"}, BaseURLs: map[string]string{"anthropic": "http://f"}}},
		{"another provider does not get that model", "provider = \"script\"", []string{"ANTHROPIC_API_KEY=k"},
			setup.Config{Provider: "script", Keys: map[string]string{"anthropic": "k"}}},
		{"a script's file is named from here", "provider = \"script\"\nmodel = \"x.yaml\"", nil, setup.Config{Provider: "script", Model: "HERE/x.yaml"}},
		{"the script that is built in is no file", "provider = \"script\"\nmodel = \"demo\"", nil, setup.Config{Provider: "script", Model: "demo"}},
		{"an address is the provider's", "provider = \"anthropic\"\nbase_url = \"http://b\"", []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://env"},
			setup.Config{Provider: "anthropic", Model: "*", Keys: map[string]string{"anthropic": "k"}, BaseURLs: map[string]string{"anthropic": "http://b"}}},
	}
	for _, tt := range tests {
		must(t, os.WriteFile(file, []byte(tt.file), 0o600))
		a, _, _ := clitest.New(t, append(tt.env, "ROOST_CONFIG="+file)...)
		got, err := a.EngineConfig()
		if err != nil {
			t.Errorf("%s: got %v, want no error", tt.name, err)
			continue
		}
		modes := filepath.Join(filepath.Dir(file), "custom_modes.yaml")
		if len(got.ModeFiles) < 1 || got.ModeFiles[0] != modes || got.Home != a.Env("HOME") || !slices.Contains(got.Guarded, file) || !slices.Contains(got.Guarded, modes) {
			t.Errorf("%s: modes %q, home %q, guarded %q", tt.name, got.ModeFiles, got.Home, got.Guarded)
		}
		if dir := filepath.Dir(file); got.Settings != dir || got.Servers.Own != filepath.Join(dir, "mcp.json") || got.Servers.Choices.Dir != filepath.Join(dir, "mcp_allowed") || got.Env == nil {
			t.Errorf("%s: settings in %s, servers %+v", tt.name, got.Settings, got.Servers)
		}
		got.Zone, got.Home, got.ModeFiles, got.Guarded = "", "", nil, nil
		got.Settings, got.Servers, got.Env, got.Defaults = "", mcp.Files{}, nil, nil
		if tt.want.Model == "*" && got.Model != "" {
			got.Model = "*"
		}
		tt.want.Model = strings.ReplaceAll(tt.want.Model, "HERE", a.Dir)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", tt.name, diff)
		}
	}
}
