package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func env(list ...string) func(string) string {
	return func(name string) string {
		for _, e := range list {
			if text, ok := strings.CutPrefix(e, name+"="); ok {
				return text
			}
		}
		return ""
	}
}

func TestTheEnvironmentOverridesTheFile(t *testing.T) {
	t.Parallel()
	f := parse(t, lines(`model = "from the file"`, `mode = "ask"`, `deny = ["rm"]`, `max_turns = 3`, `[providers.anthropic]`, `base_url = "http://file"`))
	got, warnings, err := Resolve(f, "/c.toml", env("ROOST_MODEL=from the variable", "ROOST_ALLOW=git log\nls -l\n", "ANTHROPIC_BASE_URL=http://variable", "ROOST_MODE="))
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	tests := []struct {
		key    string
		value  Value
		origin string
	}{
		{"model", text("from the variable"), "ROOST_MODEL"},
		{"mode", text("ask"), "/c.toml:2"}, // an empty variable is not set
		{"deny", texts("rm"), "/c.toml:3"},
		{"max_turns", text("3"), "/c.toml:4"},
		{"allow", texts("git log", "ls -l"), "ROOST_ALLOW"},
		{"providers.anthropic.base_url", text("http://variable"), "ANTHROPIC_BASE_URL"},
		{"provider", Value{}, Default},
	}
	for _, tt := range tests {
		s := got[tt.key]
		if diff := cmp.Diff(tt.value, s.Value); diff != "" || s.Origin != tt.origin || s.Set() != (tt.origin != Default) {
			t.Errorf("%s comes from %s, want %s: %s", tt.key, s.Origin, tt.origin, diff)
		}
	}
	if len(got) != len(Keys) {
		t.Errorf("%d settings of %d keys", len(got), len(Keys))
	}
}

// The model and the address in the file are for the provider in the file: with another one of the environment they would
// send its key to that address.
func TestAVariableNamesAnotherProvider(t *testing.T) {
	t.Parallel()
	f := parse(t, lines(`provider = "openai-compatible"`, `base_url = "http://file"`, `model = "qwen"`))
	for _, tt := range []struct{ variables, model, address string }{
		{"", "qwen", "http://file"},
		{"ROOST_PROVIDER=openai-compatible", "qwen", "http://file"},
		{"ROOST_PROVIDER=anthropic", "", ""},
		{"ROOST_PROVIDER=anthropic ROOST_MODEL=m", "m", ""},
		{"ROOST_PROVIDER=anthropic ROOST_BASE_URL=http://variable", "", "http://variable"},
	} {
		got, _, err := Resolve(f, "c", env(strings.Fields(tt.variables)...))
		if err != nil {
			t.Fatal(err)
		}
		model, address := got["model"], got["base_url"]
		if model.Value.Text != tt.model || address.Value.Text != tt.address || model.Set() != (tt.model != "") || address.Set() != (tt.address != "") {
			t.Errorf("%s: got %q from %s at %q from %s, want %q at %q", tt.variables, model.Value.Text, model.Origin, address.Value.Text, address.Origin,
				tt.model, tt.address)
		}
	}
}

func TestUnknownKeysAreNamedWithTheirLine(t *testing.T) {
	t.Parallel()
	f := parse(t, lines("# c", `modell = "x"`, `[provider]`, `x = 1`, `[providers.anthropic]`, `apikey = "k"`))
	_, got, err := Resolve(f, "c", env())
	if err != nil {
		t.Fatal(err)
	}
	want := []Warning{{2, "modell", "model"}, {4, "provider.x", "provider"}, {6, "providers.anthropic.apikey", "providers.anthropic.api_key"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValuesThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, variable string
		origin, says         string
	}{
		{"a policy", `approve = "never"`, "", "c:1", "ask, read, edits, all"},
		{"a policy of a variable", ``, "ROOST_APPROVE=yes", "ROOST_APPROVE", "ask, read, edits, all"},
		{"a number", `max_turns = "many"`, "", "c:1", "whole number"},
		{"a negative number", `max_turns = -1`, "", "c:1", "whole number"},
		{"an amount", `max_cost = "lots"`, "", "c:1", "US dollars"},
		{"a negative amount", `max_cost = -0.5`, "", "c:1", "US dollars"},
		{"a time without a unit", `idle_timeout = 90`, "", "c:1", "such as 90s"},
		{"a list where one value belongs", `model = ["a"]`, "", "c:1", "not a list"},
		{"one value where a list belongs", "\n" + `deny = "rm"`, "", "c:2", "want a list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Resolve(parse(t, tt.file), "c", env(tt.variable))
			var bad *ValueError
			if !errors.As(err, &bad) || bad.Origin != tt.origin || !strings.Contains(bad.Problem, tt.says) {
				t.Errorf("%v; want %s: ...%s...", err, tt.origin, tt.says)
			}
		})
	}
	if _, _, err := Resolve(parse(t, lines("max_cost = 0.50", `idle_timeout = "90s"`, "max_turns = 0", `approve = "all"`)), "c", env()); err != nil {
		t.Errorf("good values: %v", err)
	}
}

// Each key has a variable of its own, and no two flags fight for one.
func TestKeysAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, k := range Keys {
		for _, name := range []string{k.Name, k.Env, "--" + k.Flag} {
			if name == "--" {
				continue
			}
			if other, again := seen[name]; again {
				t.Errorf("%s stands for %s and %s", name, other, k.Name)
			}
			seen[name] = k.Name
		}
		if k.Doc == "" {
			t.Errorf("%s says nothing about itself", k.Name)
		}
		if (strings.Contains(k.Name, "api_key") || k.Name == "notify_webhook") != k.Secret {
			t.Errorf("%s: secret %v", k.Name, k.Secret)
		}
	}
}

func TestClosest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"mdel": "model", "max-turns": "max_turns", "aprove": "approve", "colour": "", "providers.antropic.api_key": "providers.anthropic.api_key",
	} {
		if got := Closest(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func ExampleResolve() {
	f, err := Parse([]byte("model = \"claude-sonnet-4-5\" # the usual one\nmdel = 1\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	settings, warnings, err := Resolve(f, "config.toml", func(name string) string {
		return map[string]string{"ROOST_MODE": "architect"}[name]
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"model", "mode", "provider"} {
		fmt.Printf("%s = %q, from %s\n", key, settings[key].Value.Text, settings[key].Origin)
	}
	for _, w := range warnings {
		fmt.Printf("line %d: nothing is called %s; %s is one\n", w.Line, w.Key, w.Closest)
	}
	// Output:
	// model = "claude-sonnet-4-5", from config.toml:1
	// mode = "architect", from ROOST_MODE
	// provider = "", from default
	// line 2: nothing is called mdel; model is one
}

func ExampleFile_With() {
	f, err := Parse([]byte("# mine\nmodel = \"old\" # for now\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(f.With("model", Value{Text: "new"})))
	// Output:
	// # mine
	// model = "new" # for now
}

// What is set for any key is what holds for it afterwards, in one file with all
// of them.
func TestEveryKeyCanBeSet(t *testing.T) {
	t.Parallel()
	candidates := func(name string) []Value {
		return []Value{
			text("for " + name + ` # "C:\x"`), text("edits"), text("high"), text("tell"), text("light"), text("bell"), text("none"), text("https://example.com/x"), text("on"), text("true"), text("7"), text("0.50"), text("90s"), texts("git log", `echo "x"`),
		}
	}
	values := map[string]Value{"deny": {IsList: true, List: []string{}}}
	content := "# mine\n"
	for _, k := range Keys {
		v, special := values[k.Name]
		for _, c := range candidates(k.Name) {
			if !special && k.Check(c) == nil {
				v = c
				break
			}
		}
		values[k.Name] = v
		if err := k.Check(v); err != nil {
			t.Errorf("%s: got %v, want no error", k.Name, err)
		}
		content = string(parse(t, content).With(k.Name, v))
	}
	got, warnings, err := Resolve(parse(t, content), "c", env())
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v of\n%s", err, warnings, content)
	}
	for name, want := range values {
		if diff := cmp.Diff(want, got[name].Value); diff != "" || !strings.HasPrefix(got[name].Origin, "c:") {
			t.Errorf("%s from %s: %s", name, got[name].Origin, diff)
		}
	}
}

func TestEachSettingHasAKind(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(settings) {
		words := strings.Fields(line)
		if kind := words[2]; readers[kind] == nil && !slices.Contains([]string{"text", "secret", "list", "effort", "webhook"}, kind) && !strings.Contains(kind, "|") {
			t.Errorf("%s has the kind %q", words[0], kind)
		}
	}
}
