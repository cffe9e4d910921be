//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// A task runs through a cloud with what the cloud's own variables hold; another run fails of its credentials, with the
// next step and without a secret.
func TestARunThroughACloud(t *testing.T) {
	t.Parallel()
	const secret = "another-secret-0123456789"
	for provider, c := range map[string]struct {
		model string
		env   []string
		wrong string // the variable and its value that is refused
		try   string
	}{
		"bedrock": {
			"us.anthropic.claude-sonnet-4-5-20250929-v1:0",
			[]string{"AWS_ACCESS_KEY_ID=" + llmtest.ExampleAWS.AccessKey, "AWS_SECRET_ACCESS_KEY=" + llmtest.ExampleAWS.Secret, "AWS_REGION=us-east-1", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME=ADDRESS"},
			"AWS_SECRET_ACCESS_KEY=" + secret, "set AWS_SECRET_ACCESS_KEY to the secret of AWS_ACCESS_KEY_ID",
		},
		"vertex": {
			"claude-sonnet-4-5@20250929",
			[]string{"GOOGLE_OAUTH_ACCESS_TOKEN=ya29.good", "GOOGLE_CLOUD_PROJECT=p", "GOOGLE_CLOUD_LOCATION=us-east5", "VERTEX_BASE_URL=ADDRESS"},
			"GOOGLE_OAUTH_ACCESS_TOKEN=" + secret, "gcloud auth print-access-token",
		},
		"azure": {
			"gpt-5.1", []string{"AZURE_OPENAI_API_KEY=good", "AZURE_OPENAI_ENDPOINT=ADDRESS"},
			"AZURE_OPENAI_API_KEY=" + secret, "roost auth set azure; then roost resume",
		},
	} {
		model := llmtest.New(t, llmtest.Reply{Input: 1000, Output: 1000}.AndCall("toolu_1", "attempt_completion", `{"result":"all done"}`))
		model.Expect("good", llmtest.Cloud{Token: "ya29.good"})
		s := newSandbox(t)
		for _, e := range c.env {
			s.env(strings.ReplaceAll(e, "ADDRESS", model.URL))
		}
		run := []string{"run", "-C", s.ws, "--provider", provider, "--model", c.model, "go"}
		if r := s.roost(run...); r.code != failure.ExitDone || !strings.Contains(r.out, "all done") {
			t.Errorf("%s: exit %d, want %d\n%s%s", provider, r.code, failure.ExitDone, r.out, r.err)
		}
		if r := s.roost("usage"); strings.Contains(r.out+r.err, "unknown") {
			t.Errorf("%s: the cost is not known\n%s", provider, r.out)
		}
		s.env(c.wrong)
		r := s.roost(run...)
		if r.code != failure.ExitConfig || !strings.Contains(r.err, c.try) || strings.Contains(r.out+r.err, secret) {
			t.Errorf("%s: exit %d, want %d with %q and without the key\n%s", provider, r.code, failure.ExitConfig, c.try, r.err)
		}
		if n := len(model.Requests()); n != 2 {
			t.Errorf("%s: %d requests, want one of each run", provider, n)
		}
	}
}

// The settings of providers go by the variables that the engine reads.
func TestVariablesOfProviders(t *testing.T) {
	t.Parallel()
	for _, p := range setup.Providers() {
		if k, is := config.Find("providers." + p + ".base_url"); !is || k.Env != setup.AddressVariable(p) {
			t.Errorf("the address of %s is in %q and in %q", p, k.Env, setup.AddressVariable(p))
		}
	}
	n := 0
	for _, k := range config.Keys {
		name, of := strings.CutPrefix(k.Name, "providers.")
		if !of || strings.HasSuffix(name, ".api_key") || strings.HasSuffix(name, ".base_url") {
			continue
		}
		if n++; k.Env != setup.CloudVariable(name) {
			t.Errorf("%s is in %q and in %q", k.Name, k.Env, setup.CloudVariable(name))
		}
	}
	if n != 5 {
		t.Errorf("%d settings of clouds, want 5", n)
	}
}
