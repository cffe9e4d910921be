package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// exported is a settings file with one profile of the given members.
func exported(members string) []byte {
	return []byte(`{"providerProfiles":{"currentApiConfigName":"p","apiConfigs":{"p":{` + members + `}}},"globalSettings":{}}`)
}

func said(p RooProfile) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(p.Values)) {
		out = append(out, k+"="+p.Values[k].Text)
	}
	return strings.Join(out, " ")
}

func TestRooProfiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, members, want, key, skipped, note string }{
		{"Anthropic", `"apiProvider":"anthropic","apiKey":"k","apiModelId":"claude-sonnet-4-5","anthropicBaseUrl":" http://a "`,
			"base_url=http://a model=claude-sonnet-4-5 provider=anthropic", "k", "", ""},
		{"no address means the provider's own", `"apiProvider":"openai-native","openAiNativeApiKey":"k","apiModelId":"gpt-5"`, "model=gpt-5 provider=openai", "k", "", ""},
		{"Google", `"apiProvider":"gemini","geminiApiKey":"k","apiModelId":"gemini-2.5-pro"`, "model=gemini-2.5-pro provider=google", "k", "", ""},
		{"OpenRouter", `"apiProvider":"openrouter","openRouterApiKey":"k","openRouterModelId":"a/b"`,
			"base_url=https://openrouter.ai/api/v1 model=a/b provider=openai-compatible", "k", "", ""},
		{"its own address goes first", `"apiProvider":"ollama","ollamaModelId":"q","ollamaBaseUrl":"http://box:1"`, "base_url=http://box:1 model=q provider=openai-compatible", "", "", ""},
		{"another's key is not taken", `"apiProvider":"ollama","apiKey":"k","openAiApiKey":"k2"`, "base_url=http://localhost:11434 provider=openai-compatible", "", "", ""},
		{"effort", `"apiProvider":"anthropic","reasoningEffort":"high","enableReasoningEffort":true`, "effort=high provider=anthropic", "", "", ""},
		{"effort switched off", `"apiProvider":"anthropic","reasoningEffort":"high","enableReasoningEffort":false`, "provider=anthropic", "", "", ""},
		{"disabled effort", `"apiProvider":"anthropic","reasoningEffort":"disable"`, "effort=none provider=anthropic", "", "", ""},
		{"an effort of tomorrow", `"apiProvider":"anthropic","reasoningEffort":"cosmic"`, "provider=anthropic", "", "", `"cosmic"`},
		{"length", `"apiProvider":"anthropic","modelMaxTokens":16000.0`, "max_tokens=16000 provider=anthropic", "", "", ""},
		{"no length", `"apiProvider":"anthropic","modelMaxTokens":0`, "provider=anthropic", "", "", ""},
		{"a length that is none", `"apiProvider":"anthropic","modelMaxTokens":1e300`, "provider=anthropic", "", "", ""},
		{"what has no place is told", `"apiProvider":"anthropic","modelTemperature":0.3`, "provider=anthropic", "", "", "modelTemperature"},
		{"and what says nothing is not", `"apiProvider":"anthropic","modelTemperature":null,"rateLimitSeconds":0,"openAiHeaders":{}`, "provider=anthropic", "", "", ""},
		{"a provider that is not spoken", `"apiProvider":"bedrock","awsSecretKey":"k"`, "", "", `"bedrock"`, ""},
		{"Azure", `"apiProvider":"openai","openAiUseAzure":true,"openAiApiKey":"k"`, "", "", "Azure", ""},
		{"no provider", `"apiKey":"k"`, "", "", "no provider", ""},
		{"members of other types", `"apiProvider":"anthropic","apiModelId":7,"apiKey":{"a":1},"anthropicBaseUrl":null`, "provider=anthropic", "", "", ""},
	} {
		got, err := Roo(exported(c.members))
		if err != nil || len(got.Profiles) != 1 {
			t.Errorf("%s: got %v %+v, want no error and len(got.Profiles) = 1", c.name, err, got)
			continue
		}
		p := got.Profiles[0]
		if said(p) != c.want || p.Key != c.key || (p.Skipped == "") != (c.skipped == "") || !strings.Contains(p.Skipped, c.skipped) {
			t.Errorf("%s: %s, key %q, skipped %q", c.name, said(p), p.Key, p.Skipped)
		}
		if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf(`%s: got %q, want strings.Contains(notes, c.note) and (c.note != "" or notes = "")`, c.name, notes)
		}
	}
}

func TestRooNamesBecomeOurs(t *testing.T) {
	t.Parallel()
	file := "\ufeff" + `{"providerProfiles":{"currentApiConfigName":"my work","apiConfigs":{
		"default":{"apiProvider":"anthropic"},"my work":{"apiProvider":"anthropic"},"my/work":{"apiProvider":"anthropic"},
		"日本":{"apiProvider":"anthropic"},"gpt-4.1":{"apiProvider":"openai-native"},"broken":3}},
		"globalSettings":{"customModes":[{"slug":"docs","name":"D"},{"name":"no slug"},7]}}`
	got, err := Roo([]byte(file))
	if err != nil || got.Current != "my work" || !strings.Contains(string(got.Custom), `"slug":"docs"`) {
		t.Fatalf("%v %+v", err, got)
	}
	var names []string
	for _, p := range got.Profiles {
		names = append(names, fmt.Sprintf("%s<-%s(%s)", p.Name, p.Roo, p.Values["roo_name"].Text))
	}
	want := []string{"default<-default()", "my-work<-my work(my work)", "my-work-2<-my/work(my/work)", "profile<-日本(日本)", "gpt-4-1<-gpt-4.1(gpt-4.1)", "<-broken()"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoExport(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "[]", "null", "{", `{"providerProfiles":{}}`, `{"providerProfiles":{"apiConfigs":[]}}`, `{"apiConfigs":{}}`, "provider = 1"} {
		if got, err := Roo([]byte(text)); !errors.Is(err, ErrNotRoo) {
			t.Errorf("%q: got %v %+v, want errors.Is(err, ErrNotRoo)", text, err, got)
		}
	}
}

// Whatever a profile holds, what is taken over can be written and read back, and its
// key is in nothing but Key.
func TestAnyRooProfileCanBeWritten(t *testing.T) {
	t.Parallel()
	apis := slices.Sorted(maps.Keys(rooProviders))
	rapid.Check(t, func(t *rapid.T) {
		const key = "sk-planted-key-0123456789"
		api := rapid.SampledFrom(apis).Draw(t, "api")
		words := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"high", "", "\x00", "a\nb", `"quoted"`, `C:\x`, "# no comment", "𝒳"}))
		members := map[string]any{
			"apiProvider": api, rooProviders[api].model: words.Draw(t, "model"), "reasoningEffort": words.Draw(t, "effort"),
			"modelMaxTokens": rapid.Float64Range(-1, 1e12).Draw(t, "length"),
		}
		if m := rooProviders[api].base; m != "" {
			members[m] = words.Draw(t, "base")
		}
		if m := rooProviders[api].key; m != "" {
			members[m] = key
		}
		name := words.Draw(t, "name")
		data, err := json.Marshal(map[string]any{"providerProfiles": map[string]any{"apiConfigs": map[string]any{name: members}}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Roo(data)
		if err != nil || len(got.Profiles) != 1 {
			t.Fatalf("%v of %s", err, data)
		}
		p := got.Profiles[0]
		if !ValidProfile(p.Name) || rooProviders[api].key != "" && p.Key != key {
			t.Fatalf("%q, key %q", p.Name, p.Key)
		}
		f := &File{}
		for field, v := range p.Values {
			text := f.With("profiles."+p.Name+"."+field, v)
			if f, err = Parse(text); err != nil {
				t.Fatalf("%v of\n%s", err, text)
			}
		}
		if strings.Contains(string(f.Text()), key) {
			t.Fatalf("the key is in the settings:\n%s", f.Text())
		}
		values, warnings, err := Resolve(f, "c", func(string) string { return "" })
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%v %v of\n%s", err, warnings, f.Text())
		}
		_, fields := Profiles(values, f)
		for field, v := range p.Values {
			if got := fields[p.Name][field].Value.Text; got != v.Text {
				t.Fatalf("%s is read back as %q, was %q", field, got, v.Text)
			}
		}
	})
}

func FuzzRoo(f *testing.F) {
	f.Add(exported(`"apiProvider":"anthropic","apiKey":"k"`))
	f.Add([]byte(`{"providerProfiles":{"apiConfigs":{"a":{"apiProvider":"openai","openAiUseAzure":1},"a":null}},"globalSettings":{"customModes":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Roo(data)
		seen := map[string]bool{}
		for _, p := range got.Profiles {
			if err != nil || p.Skipped == "" && (!ValidProfile(p.Name) || seen[p.Name] || p.Values["provider"].Text == "") {
				t.Errorf(`got %v %+v, want no error and (p.Skipped != "" or (ValidProfile(p.Name) and not seen[p.Name] and p.Values["provider"].Text != ""))`,
					err, p)
			}
			seen[p.Name] = p.Skipped == ""
		}
	})
}
