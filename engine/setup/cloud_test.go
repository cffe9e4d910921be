package setup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/llm/cloud"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace/shell"
)

// withHome is a configuration with these variables and these files below the home folder.
func withHome(t *testing.T, vars, files map[string]string) Config {
	t.Helper()
	home := t.TempDir()
	for name, text := range files {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) string { return strings.ReplaceAll(vars[name], "HOME", home) }
	c := ConfigFromEnv(env)
	c.Env, c.Home = env, home
	return c
}

// AWS's keys are found where its own programs keep them.
func TestAWSKeys(t *testing.T) {
	files := map[string]string{
		".aws/credentials": "# mine\n[default]\naws_access_key_id = AKIADEFAULT\naws_secret_access_key=of-default # a remark\n\n" +
			"[work]\n  aws_access_key_id = nested\naws_access_key_id=AKIAWORK\naws_secret_access_key = of/work+=\naws_session_token = session-of-work\n[half]\naws_access_key_id=AKIAHALF\n",
		".aws/config": "[default]\nregion = us-west-2\n[profile work]\nregion=eu-west-1\n[profile inline]\naws_access_key_id=AKIAINLINE\naws_secret_access_key=of-inline\n" +
			"[profile sso]\nsso_session = corp\nregion = us-east-2\n[profile run]\ncredential_process = /bin/x\n[profile role]\nrole_arn = arn\nsource_profile = work\n[sso-session corp]\nsso_region=us-east-1\n",
		"else/creds": "[default]\naws_access_key_id=AKIAELSE\naws_secret_access_key=of-else\n",
	}
	none := cloud.AWSCredentials{}
	for name, c := range map[string]struct {
		vars   map[string]string
		files  map[string]string
		want   cloud.AWSCredentials
		origin string
		says   string
	}{
		"variables": {
			map[string]string{"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "of-env", "AWS_SESSION_TOKEN": "session", "AWS_PROFILE": "work"},
			files, cloud.AWSCredentials{AccessKeyID: "AKIAENV", SecretAccessKey: "of-env", SessionToken: "session"}, "AWS_ACCESS_KEY_ID", "",
		},
		"the default profile": {nil, files, cloud.AWSCredentials{AccessKeyID: "AKIADEFAULT", SecretAccessKey: "of-default"}, "the profile default in ", ""},
		"a profile with a session": {
			map[string]string{"AWS_PROFILE": "work"}, files,
			cloud.AWSCredentials{AccessKeyID: "AKIAWORK", SecretAccessKey: "of/work+=", SessionToken: "session-of-work"}, "the profile work in ", "",
		},
		"keys in the settings file": {map[string]string{"AWS_PROFILE": "inline"}, files, cloud.AWSCredentials{AccessKeyID: "AKIAINLINE", SecretAccessKey: "of-inline"}, ".aws/config", ""},
		"another file": {
			map[string]string{"AWS_SHARED_CREDENTIALS_FILE": "HOME/else/creds"}, files,
			cloud.AWSCredentials{AccessKeyID: "AKIAELSE", SecretAccessKey: "of-else"}, "else/creds", "",
		},
		"nothing":               {nil, nil, none, "", ""},
		"sso":                   {map[string]string{"AWS_PROFILE": "sso"}, files, none, "", "gets its keys by sso_session, which Roost does not read"},
		"a program":             {map[string]string{"AWS_PROFILE": "run"}, files, none, "", "by credential_process"},
		"a role":                {map[string]string{"AWS_PROFILE": "role"}, files, none, "", "by role_arn"},
		"half of a key":         {map[string]string{"AWS_PROFILE": "half"}, files, none, "", "the AWS profile half has no keys"},
		"a profile that is not": {map[string]string{"AWS_PROFILE": "gone"}, files, none, "", "the AWS profile gone has no keys"},
	} {
		config := withHome(t, c.vars, c.files)
		got, origin, err := config.awsKeys()
		if got != c.want || !strings.Contains(filepath.ToSlash(origin), c.origin) || (origin == "") != (c.origin == "") {
			t.Errorf("%s: got %+v from %q, want %+v from %q", name, got, origin, c.want, c.origin)
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
}

const adc = `{"type":"authorized_user","client_id":"c","client_secret":"secret-of-client","refresh_token":"refresh-of-mine","quota_project_id":"mine"}`

// What is missing is named with what helps, before anything is asked; what is there is enough.
func TestCloudsThatLackSomething(t *testing.T) {
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "secret-of-env"}
	and := func(vars map[string]string, more ...string) map[string]string {
		out := map[string]string{}
		for k, v := range vars {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	gcloud := map[string]string{".config/gcloud/application_default_credentials.json": adc}
	for name, c := range map[string]struct {
		provider    string
		vars, files map[string]string
		why, try    string // "" = nothing is missing
	}{
		"no credentials of AWS":     {"bedrock", nil, nil, "no credentials of AWS", "aws configure"},
		"a profile by sso":          {"bedrock", map[string]string{"AWS_PROFILE": "s"}, map[string]string{".aws/config": "[profile s]\nsso_start_url=x\n"}, "sso", "aws configure export-credentials --profile s"},
		"no region":                 {"bedrock", keys, nil, "no region", "providers.bedrock.region"},
		"a region that cannot be":   {"bedrock", and(keys, "AWS_REGION", "evil.com/"), nil, "no region of AWS", "providers.bedrock.region"},
		"a region":                  {"bedrock", and(keys, "AWS_DEFAULT_REGION", "us-east-1"), nil, "", ""},
		"the region of the profile": {"bedrock", keys, map[string]string{".aws/config": "[default]\nregion=eu-west-1\n"}, "", ""},
		"a key of Bedrock's":        {"bedrock", map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "us-east-1"}, nil, "", ""},
		"no credentials of Google":  {"vertex", nil, nil, "no credentials of Google", "gcloud auth application-default login"},
		"a credentials file that is not": {
			"vertex", map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "HOME/gone.json"}, nil, "gone.json", "gcloud",
		},
		"a credentials file of another kind": {
			"vertex", map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "HOME/x"}, map[string]string{"x": `{"type":"external_account"}`}, "external_account", "GOOGLE_OAUTH_ACCESS_TOKEN",
		},
		"no project":                 {"vertex", map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "t", "GOOGLE_CLOUD_LOCATION": "global"}, nil, "no project", "providers.vertex.project"},
		"no location":                {"vertex", nil, gcloud, "no location", "providers.vertex.location global"},
		"the project of the login":   {"vertex", map[string]string{"CLOUD_ML_REGION": "us-east5"}, gcloud, "", ""},
		"an address with both":       {"vertex", map[string]string{"VERTEX_BASE_URL": "https://x/v1/projects/p/locations/l"}, gcloud, "", ""},
		"no key of Azure's":          {"azure", nil, nil, "no key", "roost auth set azure"},
		"no address of Azure's":      {"azure", map[string]string{"AZURE_OPENAI_API_KEY": "k"}, nil, "no address", "providers.azure.base_url"},
		"an address with a password": {"azure", map[string]string{"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://a:b@x"}, nil, "password", "leave"},
		"all of Azure":               {"azure", map[string]string{"AZURE_OPENAI_AD_TOKEN": "k", "AZURE_OPENAI_ENDPOINT": "https://x"}, nil, "", ""},
	} {
		r := Resolver{Config: withHome(t, c.vars, c.files)}
		got, err := r.Provider(task.Settings{Provider: c.provider, Model: "claude-sonnet-4-6"})
		var config *Error
		switch {
		case c.why == "":
			if err != nil || got.LLM == nil || got.LLM.Name() != c.provider {
				t.Errorf("%s: got %v, %v", name, got.LLM, err)
			}
		case !errors.As(err, &config) || !strings.Contains(config.Why, c.why) || name != "an address with a password" && !strings.Contains(config.Try, c.try):
			t.Errorf("%s: got %+v, want %q and %q", name, err, c.why, c.try)
		}
	}
}

// No model is chosen for a cloud, and no cloud because its credentials are there: they are there for other work.
func TestCloudsAreNeverGuessed(t *testing.T) {
	c := withHome(t, map[string]string{
		"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", "AWS_BEARER_TOKEN_BEDROCK": "k",
		"GOOGLE_OAUTH_ACCESS_TOKEN": "t", "AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://x",
	}, nil)
	if c.Provider != "" {
		t.Errorf("%s is chosen", c.Provider)
	}
	for _, provider := range []string{"bedrock", "vertex", "azure"} {
		var config *Error
		if _, err := (Resolver{Config: c}).Provider(task.Settings{Provider: provider}); !errors.As(err, &config) || config.Why != "no model is named" {
			t.Errorf("%s: got %v, want that no model is named", provider, err)
		}
	}
}

// What signs and what gets tokens is masked wherever a run shows it.
func TestCloudSecretsAreMasked(t *testing.T) {
	c := withHome(t, map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "secret-of-env-123", "AWS_SESSION_TOKEN": "session-of-env-123", "AWS_REGION": "us-east-1", "CLOUD_ML_REGION": "global",
		"AWS_SHARED_CREDENTIALS_FILE": "HOME/creds",
	}, map[string]string{".config/gcloud/application_default_credentials.json": adc, "creds": "[default]\naws_access_key_id=A\naws_secret_access_key=secret-of-file-123\n"})
	shows := func(s task.Settings, secrets ...string) {
		t.Helper()
		p, err := (Resolver{Config: c}).Provider(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if got, _ := p.Masks.String("it is " + secret); strings.Contains(got, secret) {
				t.Errorf("%s: not masked: %s", s.Provider, got)
			}
		}
	}
	shows(task.Settings{Provider: "script"}, "secret-of-env-123", "session-of-env-123")
	shows(task.Settings{Provider: "vertex", Model: "gemini-2.5-pro"}, "secret-of-client", "refresh-of-mine")
	env := c.Env
	c.Env = func(name string) string {
		if name == "AWS_SECRET_ACCESS_KEY" {
			return ""
		}
		return env(name)
	}
	shows(task.Settings{Provider: "bedrock", Model: "m"}, "secret-of-file-123")
}

// TestKnownKeys: every key of the settings and the environment is known, wherever text leaves, and no command gets one
// with which Roost asks models.
func TestKnownKeys(t *testing.T) {
	c := withHome(t, map[string]string{
		"GEMINI_API_KEY": "gemini-of-env-123", "GOOGLE_API_KEY": "google-of-env-123", "AWS_SECRET_ACCESS_KEY": "secret-of-env-123", "AWS_SESSION_TOKEN": "session-of-env-123",
	}, nil)
	c.Keys["anthropic"] = "anthropic-of-file-123"
	c.Profiles = map[string]Profile{"work": {Choice: Choice{Provider: "openai"}, Key: "profile-of-work-123"}}
	masks := redact.New(c.KnownKeys()...)
	for _, key := range []string{"gemini-of-env-123", "google-of-env-123", "secret-of-env-123", "session-of-env-123", "anthropic-of-file-123", "profile-of-work-123"} {
		if got, _ := masks.String("it is " + key); strings.Contains(got, key) {
			t.Errorf("got %q, want a mask for %s", got, key)
		}
	}
	tools := []string{"GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"} // the user's own programs need them
	for _, provider := range Providers() {
		for _, name := range KeyVariables(provider) {
			if got := slices.Contains(shell.Environ([]string{name + "=x"}), name+"=x"); got != slices.Contains(tools, name) {
				t.Errorf("%s: got %v, want that a command gets it: %v", name, got, !got)
			}
		}
	}
}

// Where a login comes from, for a person.
func TestCloudLogin(t *testing.T) {
	c := withHome(t, map[string]string{"AWS_ACCESS_KEY_ID": "AKIA1234", "AWS_SECRET_ACCESS_KEY": "s"}, map[string]string{".config/gcloud/application_default_credentials.json": adc})
	if got, err := c.CloudLogin("bedrock"); err != nil || got != (Login{"AWS_ACCESS_KEY_ID", "1234"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := c.CloudLogin("vertex"); err != nil || !strings.HasSuffix(got.Origin, "application_default_credentials.json") {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, name := range []string{"azure", "anthropic"} {
		if got, err := c.CloudLogin(name); err != nil || got != (Login{}) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}
