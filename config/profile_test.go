package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesInProfiles(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"profiles.work.model": true, "profiles.work.api_key": true, "profiles.gpt-4.1.model": true, "profiles.w_1.roo_name": true,
		"source_profiles.roo-cline-12ab": true, "source_profiles.rooveterinaryinc.roo-cline-12ab": true,
		"profiles.work": false, "profiles.model": false, "profiles..model": false, "profiles.a b.model": false, "profiles.work.mdel": false,
		"profiles.work.": false, "source_profiles.": false, "source_profiles.a..b": false, "source_profiles": false, "profiles.é.model": false,
	} {
		k, ok := Find(name)
		if ok != want || ok && k.Name != name {
			t.Errorf("%s: got %v %v, want ok = %v and (not ok or k.Name = name)", name, k, ok, want)
		}
	}
	if k, _ := Find("profiles.work.api_key"); !k.Secret {
		t.Error("the key of a profile may be shown")
	}
	if got := Closest("profiles.gpt-4.1.mdel"); got != "profiles.gpt-4.1.model" {
		t.Errorf("the nearest: %q", got)
	}
}

func TestProfilesOfAFile(t *testing.T) {
	t.Parallel()
	f := parse(t, `profile = "work"
[profiles.work]
provider = "anthropic"
allow = ["go test"]
[profiles.gpt-4.1]
provider = "openai"
mdel = "gpt-4.1"
[profiles]
lone.model = "m"
[source_profiles]
rooveterinaryinc.roo-cline-12ab = "work"
`)
	values, warnings, err := Resolve(f, "c", env())
	if err != nil || len(warnings) != 1 || warnings[0] != (Warning{7, "profiles.gpt-4.1.mdel", "profiles.gpt-4.1.model"}) {
		t.Fatalf(`got %v %+v, want no error and len(warnings) = 1 and warnings[0] = (Warning{7, "profiles.gpt-4.1.mdel", "profiles.gpt-4.1.model"})`,
			err, warnings)
	}
	names, fields := Profiles(values, f)
	if diff := cmp.Diff([]string{"work", "gpt-4.1", "lone"}, names); diff != "" {
		t.Error(diff)
	}
	if got := fields["work"]["allow"]; got.Origin != "c:4" || !cmp.Equal(got.Value.List, []string{"go test"}) {
		t.Errorf("a field: %+v", got)
	}
	if got := values["source_profiles.rooveterinaryinc.roo-cline-12ab"].Value.Text; got != "work" || values["profile"].Value.Text != "work" {
		t.Errorf("what was remembered: %q", got)
	}
}

func TestAProfileIsChecked(t *testing.T) {
	t.Parallel()
	for line, problem := range map[string]string{
		`effort = "loud"`: "none, minimal", `max_tokens = -1`: "whole number", `approve = "maybe"`: "edits", `max_cost = "much"`: "US dollars",
		`allow = "ls"`: "list", `idle_timeout = "soon"`: "a time", `model = ["a"]`: "one value",
	} {
		var bad *ValueError
		_, _, err := Resolve(parse(t, "[profiles.w]\n"+line+"\n"), "c", env())
		if !errors.As(err, &bad) || bad.Origin != "c:2" || !strings.Contains(bad.Problem, problem) {
			t.Errorf("%s: got %v, want errors.As(err, &bad) and bad.Origin = \"c:2\" and strings.Contains(bad.Problem, problem)",
				line, err)
		}
	}
}

// A setting goes into a file that is not there yet, with a table and without.
func TestTheFirstSetting(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"model": "model = \"x\"\n", "profiles.w.model": "[profiles.w]\nmodel = \"x\"\n",
		"source_profiles.a.b-1": "[source_profiles.a]\nb-1 = \"x\"\n",
	} {
		text := (&File{}).With(name, text("x"))
		if string(text) != want {
			t.Errorf("%s: got %q, want string(text) = %v", name, text, want)
		}
		if e, ok := parse(t, string(text)).Get(name); !ok || e.Value.Text != "x" {
			t.Errorf("%s is not read back: %+v", name, e)
		}
	}
}
