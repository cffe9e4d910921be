package cloud_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/llm/cloud"
	"github.com/roost-dev/roost/llm/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var at = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const (
	sonnet  = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
	arn     = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/" + sonnet
	azures  = "0123456789abcdef0123456789abcdef"
	entra   = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJ4In0.c2lnbmF0dXJl"
	project = "my-project"
)

// serve is a server with the clock of the tests.
func serve(t *testing.T, replies ...llmtest.Reply) *llmtest.Server {
	t.Helper()
	s := llmtest.New(t, replies...)
	s.Cloud.Now = func() time.Time { return at }
	return s
}

// options have no waits, and the clock of the tests.
func options(base, model string) wire.Options {
	o := wire.Options{BaseURL: base, Model: model, Now: func() time.Time { return at }}
	o.Backoff.Sleep = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
	return o
}

// made is a provider, or fails the test.
func made(t *testing.T, p llm.Provider, err error) llm.Provider {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.(interface{ CloseIdle() }).CloseIdle)
	return p
}

func bedrock(t *testing.T, base, model string, change ...func(*cloud.BedrockOptions)) llm.Provider {
	t.Helper()
	o := cloud.BedrockOptions{Options: options(base, model), Region: "us-east-1"}
	keys := cloud.AWSCredentials{AccessKeyID: llmtest.ExampleAWS.AccessKey, SecretAccessKey: llmtest.ExampleAWS.Secret}
	o.Credentials = func() (cloud.AWSCredentials, error) { return keys, nil }
	for _, f := range change {
		f(&o)
	}
	p, err := cloud.NewBedrock(o)
	return made(t, p, err)
}

func vertex(t *testing.T, base, model string, change ...func(*cloud.VertexOptions)) llm.Provider {
	t.Helper()
	o := cloud.VertexOptions{Options: options(base, model), Project: project, Location: "us-east5"}
	o.Credentials.Token = "ya29.of-the-environment"
	for _, f := range change {
		f(&o)
	}
	p, err := cloud.NewVertex(o)
	return made(t, p, err)
}

func azure(t *testing.T, base, model, version string, change ...func(*cloud.AzureOptions)) llm.Provider {
	t.Helper()
	o := cloud.AzureOptions{Options: options(base, model), APIVersion: version}
	o.APIKey = azures
	for _, f := range change {
		f(&o)
	}
	p, err := cloud.NewAzure(o)
	return made(t, p, err)
}

// doors are all ways in.
var doors = map[string]func(t *testing.T, base string) llm.Provider{
	"bedrock": func(t *testing.T, base string) llm.Provider { return bedrock(t, base, sonnet) },
	"bedrock, by key": func(t *testing.T, base string) llm.Provider {
		return bedrock(t, base, arn, func(o *cloud.BedrockOptions) { o.APIKey, o.Credentials = "bedrock-api-key-of-mine", nil })
	},
	"vertex, claude":   func(t *testing.T, base string) llm.Provider { return vertex(t, base, "claude-sonnet-4-5@20250929") },
	"vertex, gemini":   func(t *testing.T, base string) llm.Provider { return vertex(t, base, "gemini-3-flash-preview") },
	"azure, responses": func(t *testing.T, base string) llm.Provider { return azure(t, base, "gpt-5.1", "") },
	"azure, by token": func(t *testing.T, base string) llm.Provider {
		return azure(t, base, "gpt-5.1", "v1", func(o *cloud.AzureOptions) { o.APIKey = entra })
	},
	"azure, deployment": func(t *testing.T, base string) llm.Provider { return azure(t, base, "my deployment", "2024-10-21") },
}

var hi = llm.Message{Role: "user", Content: json.RawMessage(`[{"type":"text","text":"hi"}]`)}

type outcome struct {
	text    string
	retries int
	done    *llm.Done
	err     error
}

func ask(t *testing.T, p llm.Provider, messages ...llm.Message) (o outcome) {
	t.Helper()
	req := llm.Request{System: "be brief", Messages: append([]llm.Message{hi}, messages...), MaxTokens: 4000, Tools: []llm.ToolSpec{
		{Name: "read_file", Description: "reads", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}}
	for c, err := range p.Stream(t.Context(), req) {
		switch c := c.(type) {
		case llm.TextDelta:
			o.text += c.Text
		case llm.Retrying:
			o.retries++
		case llm.Done:
			o.done = &c
		}
		if err != nil {
			o.err = err
		}
	}
	return o
}

// A turn with a call, and the next one with its result, through every door; however the network cuts the stream.
func TestATurnThroughEveryDoor(t *testing.T) {
	for name, open := range doors {
		for cutting, cut := range map[string]func(llmtest.Reply) llmtest.Reply{
			"at once": func(r llmtest.Reply) llmtest.Reply { return r }, "byte by byte": func(r llmtest.Reply) llmtest.Reply { return r.Trickle(1, 0) },
		} {
			t.Run(name+", "+cutting, func(t *testing.T) {
				first := llmtest.Reply{Input: 100, Output: 20, CacheRead: 50}.AndText("I look. <&> 你好").AndCall("toolu_1", "read_file", `{"path":"a"}`)
				s := serve(t, cut(first), cut(llmtest.Text("Seen.")))
				p := open(t, s.URL)
				o := ask(t, p)
				if o.err != nil || o.text != "I look. <&> 你好" || o.done.StopReason != "tool_use" {
					t.Fatalf("got %+v, want the text and a call", o)
				}
				if u := o.done.Usage; u.Input != 100 || u.Output != 20 || u.CacheRead != 50 {
					t.Errorf("usage %+v, want 100 in, 20 out, 50 from the cache", u)
				}
				blocks, err := json.Marshal(o.done.Blocks)
				if err != nil || !strings.Contains(string(blocks), `"name":"read_file","input":{"path":"a"}`) {
					t.Fatalf("%v, blocks %s", err, blocks)
				}
				id := "toolu_1"
				o = ask(t, p, llm.Message{Role: "assistant", Content: blocks}, llm.Message{Role: "user",
					Content: json.RawMessage(`[{"type":"tool_result","tool_use_id":"` + id + `","content":"of a"}]`)})
				if o.err != nil || o.text != "Seen." {
					t.Errorf("got %+v, want Seen.", o)
				}
			})
		}
	}
}

// Where each door leads, and that the bodies of a task get longer at their end only.
func TestAddresses(t *testing.T) {
	for name, want := range map[string]string{
		"bedrock":           "/model/" + sonnet + "/invoke-with-response-stream",
		"bedrock, by key":   "/model/" + arn + "/invoke-with-response-stream",
		"vertex, claude":    "/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict",
		"vertex, gemini":    "/v1/projects/my-project/locations/us-east5/publishers/google/models/gemini-3-flash-preview:streamGenerateContent",
		"azure, responses":  "/openai/v1/responses",
		"azure, by token":   "/openai/v1/responses",
		"azure, deployment": "/openai/deployments/my deployment/chat/completions",
	} {
		s := serve(t, llmtest.Text("ok"))
		if o := ask(t, doors[name](t, s.URL)); o.err != nil {
			t.Fatalf("%s: %v", name, o.err)
		}
		r := s.Requests()[0]
		if r.Path != want {
			t.Errorf("%s: got %s, want %s", name, r.Path, want)
		}
		if claude := strings.Contains(name, "bedrock") || strings.Contains(name, "claude"); claude && strings.Count(string(r.Body), `"cache_control":{"type":"ephemeral"}`) != 3 {
			t.Errorf("%s: the body asks for no caching: %s", name, r.Body)
		}
	}
	for base, want := range map[string]string{
		"https://me.openai.azure.com": "https://me.openai.azure.com/openai/v1", "https://me.openai.azure.com/openai/v1/": "https://me.openai.azure.com/openai/v1",
		"https://me.openai.azure.com/openai": "https://me.openai.azure.com/openai/v1",
	} {
		o := cloud.AzureOptions{Options: options(base, "m")}
		if at := where(t, &o.Options, func() (llm.Provider, error) { return cloud.NewAzure(o) }); at != want+"/responses" {
			t.Errorf("%s: got %s, want %s", base, at, want)
		}
	}
	for location, want := range map[string]string{
		"us-east5": "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/", "global": "https://aiplatform.googleapis.com/v1/projects/p/locations/global/",
		"eu": "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/",
	} {
		o := cloud.VertexOptions{Options: options("", "gemini-2.5-pro"), Project: "p", Location: location, Credentials: cloud.GoogleCredentials{Token: "t"}}
		if at := where(t, &o.Options, func() (llm.Provider, error) { return cloud.NewVertex(o) }); at != want+"publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse" {
			t.Errorf("%s: got %s, want %s", location, at, want)
		}
	}
	for region, want := range map[string]string{
		"eu-central-1": "https://bedrock-runtime.eu-central-1.amazonaws.com", "cn-north-1": "https://bedrock-runtime.cn-north-1.amazonaws.com.cn",
		"us-gov-west-1": "https://bedrock-runtime.us-gov-west-1.amazonaws.com",
	} {
		o := cloud.BedrockOptions{Options: options("", "a/b:0"), Region: region}
		o.APIKey = "k"
		if at := where(t, &o.Options, func() (llm.Provider, error) { return cloud.NewBedrock(o) }); at != want+"/model/a%2Fb%3A0/invoke-with-response-stream" {
			t.Errorf("%s: got %s, want %s", region, at, want)
		}
	}
	inPlace := cloud.VertexOptions{Options: options("https://x/v1/projects/p/locations/l/", "claude-opus-4-8"), Credentials: cloud.GoogleCredentials{Token: "t"}}
	if at := where(t, &inPlace.Options, func() (llm.Provider, error) { return cloud.NewVertex(inPlace) }); at !=
		"https://x/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4-8:streamRawPredict" {
		t.Errorf("got %s, want the project and location of the address", at)
	}
	for name, want := range map[string]string{"bedrock": "bedrock at URL", "vertex, gemini": "vertex at URL/v1/projects/my-project/locations/us-east5", "azure, responses": "azure at URL"} {
		if got := fmt.Sprint(doors[name](t, "URL")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// An address of AWS itself names the region.
	o := cloud.BedrockOptions{Options: options("https://bedrock-runtime-fips.us-west-2.amazonaws.com/", "m")}
	o.APIKey = "k"
	if at := where(t, &o.Options, func() (llm.Provider, error) { return cloud.NewBedrock(o) }); !strings.HasPrefix(at, "https://bedrock-runtime-fips.us-west-2.amazonaws.com/model/m/") {
		t.Errorf("got %s", at)
	}
}

// where is the address to which a provider with these options sends.
func where(t *testing.T, o *wire.Options, open func() (llm.Provider, error)) (at string) {
	t.Helper()
	o.HTTPClient = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		at = r.URL.String()
		return nil, errors.New("nothing is sent")
	})}
	o.Backoff.Retries = -1
	p, err := open()
	if err != nil {
		t.Fatal(err)
	}
	ask(t, p)
	return at
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What is no region, project or location never becomes a part of a host.
func TestPlacesThatCannotBe(t *testing.T) {
	for _, region := range []string{"", "us", "evil.com/", "us-east-1.evil.com", "us-east-1@evil.com", "US-EAST-1"} {
		if _, err := cloud.NewBedrock(cloud.BedrockOptions{Region: region}); err == nil {
			t.Errorf("the region %q is used", region)
		}
	}
	for _, place := range [][2]string{{"", "global"}, {"p", ""}, {"p", "evil.com/"}, {"p/../q", "global"}, {"p", "us-east5.evil"}, {"p?", "global"}} {
		if _, err := cloud.NewVertex(cloud.VertexOptions{Project: place[0], Location: place[1]}); err == nil {
			t.Errorf("the place %q is used", place)
		}
	}
	if _, err := cloud.NewAzure(cloud.AzureOptions{}); err == nil {
		t.Error("Azure is asked without an address")
	}
}

// What each cloud refuses: the kind, so that it is not tried again where that cannot help, and what to do.
func TestRefusals(t *testing.T) {
	with := func(keys cloud.AWSCredentials) func(*cloud.BedrockOptions) {
		return func(o *cloud.BedrockOptions) {
			o.Credentials = func() (cloud.AWSCredentials, error) { return keys, nil }
		}
	}
	example := cloud.AWSCredentials{AccessKeyID: llmtest.ExampleAWS.AccessKey, SecretAccessKey: llmtest.ExampleAWS.Secret}
	for name, c := range map[string]struct {
		lets llmtest.Cloud
		open func(*testing.T, string) llm.Provider
		kind llm.Kind
		says string // of the message
		try  string
	}{
		"the secret of another key": {open: func(t *testing.T, base string) llm.Provider {
			return bedrock(t, base, sonnet, with(cloud.AWSCredentials{AccessKeyID: example.AccessKeyID, SecretAccessKey: "another-secret-of-aws"}))
		}, kind: llm.Auth, says: "does not match", try: "set AWS_SECRET_ACCESS_KEY"},
		"an unknown key": {open: func(t *testing.T, base string) llm.Provider {
			return bedrock(t, base, sonnet, with(cloud.AWSCredentials{AccessKeyID: "AKIDOTHER", SecretAccessKey: "another-secret-of-aws"}))
		}, kind: llm.Auth, says: "security token", try: "roost auth status bedrock"},
		"an ended session": {
			lets: llmtest.Cloud{Session: "session-token-of-mine", SessionEnded: true},
			open: func(t *testing.T, base string) llm.Provider {
				keys := example
				keys.SessionToken = "session-token-of-mine"
				return bedrock(t, base, sonnet, with(keys))
			}, kind: llm.Auth, says: "expired", try: "aws sso login",
		},
		"a clock that is slow": {
			lets: llmtest.Cloud{Now: func() time.Time { return at.Add(6 * time.Minute) }}, open: doors["bedrock"],
			kind: llm.Auth, says: "Signature expired", try: "set this machine's clock",
		},
		"a clock that is fast": {
			lets: llmtest.Cloud{Now: func() time.Time { return at.Add(-6 * time.Minute) }}, open: doors["bedrock"],
			kind: llm.Auth, says: "not yet current", try: "set this machine's clock",
		},
		"another region's address": {lets: llmtest.Cloud{Region: "eu-west-1"}, open: doors["bedrock"], kind: llm.Auth, says: "valid region", try: "roost auth status"},
		"a wrong key of Bedrock":   {lets: llmtest.Cloud{BedrockKey: "x"}, open: doors["bedrock, by key"], kind: llm.Auth, says: "API Key", try: "roost auth set bedrock"},
		"a region without the model": {
			lets: llmtest.Cloud{Models: []string{"anthropic.claude-opus-4-8"}}, open: doors["bedrock"],
			kind: llm.Invalid, says: "identifier is invalid", try: "another region: roost config set providers.bedrock.region",
		},
		"a model without its group of regions": {
			lets: llmtest.Cloud{Models: []string{sonnet}}, open: func(t *testing.T, base string) llm.Provider {
				return bedrock(t, base, strings.TrimPrefix(sonnet, "us."))
			}, kind: llm.Invalid, says: "on-demand", try: "us., eu., apac. or global.",
		},
		"an ended token of Google's": {lets: llmtest.Cloud{Token: "ya29.new"}, open: doors["vertex, claude"], kind: llm.Auth, says: "invalid authentication", try: "gcloud auth print-access-token"},
		"another's project":          {lets: llmtest.Cloud{Project: "theirs"}, open: doors["vertex, gemini"], kind: llm.Auth, says: "aiplatform.endpoints.predict", try: "roles/aiplatform.user"},
		"a location without the model": {
			lets: llmtest.Cloud{Models: []string{"x"}}, open: doors["vertex, claude"], kind: llm.Invalid, says: "not found", try: "providers.vertex.location global",
		},
		"a deployment that is not there": {
			lets: llmtest.Cloud{Deployments: []string{"x"}}, open: doors["azure, responses"], kind: llm.Invalid, says: "does not exist", try: "name of a deployment",
		},
		"a version that is not there": {
			lets: llmtest.Cloud{Versions: []string{"2099-01-01"}}, open: doors["azure, deployment"], kind: llm.Invalid, says: "Unsupported api version", try: "azure.api_version",
		},
		"an address with more than the resource": {
			open: func(t *testing.T, base string) llm.Provider { return azure(t, base+"/openai/v1/responses", "m", "") }, kind: llm.Invalid, says: "Not Found", try: "the resource's address alone",
		},
		"a wrong key of Azure": {lets: llmtest.Cloud{}, open: func(t *testing.T, base string) llm.Provider {
			return azure(t, base, "m", "", func(o *cloud.AzureOptions) { o.APIKey = strings.Repeat("f", 32) })
		}, kind: llm.Auth, says: "Access denied", try: "roost auth set azure"},
		"an ended token of Entra": {lets: llmtest.Cloud{}, open: func(t *testing.T, base string) llm.Provider {
			return azure(t, base, "m", "", func(o *cloud.AzureOptions) { o.APIKey = entra })
		}, kind: llm.Auth, says: "Access denied", try: "az account get-access-token"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.Tolerate, s.Key, s.Cloud = true, azures, c.lets
			if s.Cloud.Now == nil {
				s.Cloud.Now = func() time.Time { return at }
			}
			o := ask(t, c.open(t, s.URL))
			var failed *llm.Error
			if !errors.As(o.err, &failed) {
				t.Fatalf("got %v, want an *llm.Error", o.err)
			}
			if strings.Contains(failed.Message, "Canonical") {
				t.Errorf("the message shows what AWS signed: %q", failed.Message)
			}
			if failed.Kind != c.kind || !strings.Contains(failed.Message, c.says) || !strings.Contains(failed.Try, c.try) {
				t.Errorf("got %s, %q, try %q; want %s, %q, try %q", failed.Kind, failed.Message, failed.Try, c.kind, c.says, c.try)
			}
			if len(s.Requests()) > 1 || o.retries > 0 {
				t.Errorf("it was tried %d times", len(s.Requests()))
			}
			for _, secret := range []string{llmtest.ExampleAWS.Secret, "another-secret", "session-token", "bedrock-api-key", "ya29", azures, entra, "AWS4-HMAC"} {
				if strings.Contains(o.err.Error(), secret) {
					t.Errorf("the error shows %q: %v", secret, o.err)
				}
			}
		})
	}
}

// Credentials that are gone when a request goes out: nothing is sent, and nothing is tried again.
func TestCredentialsThatAreGone(t *testing.T) {
	s := serve(t)
	o := ask(t, bedrock(t, s.URL, sonnet, func(o *cloud.BedrockOptions) {
		o.Credentials = func() (cloud.AWSCredentials, error) { return cloud.AWSCredentials{}, errors.New("the profile is gone") }
	}))
	var failed *llm.Error
	if !errors.As(o.err, &failed) || failed.Kind != llm.Auth || failed.Message != "the profile is gone" || o.retries > 0 || len(s.Requests()) > 0 {
		t.Errorf("got %v after %d tries and %d requests, want that the profile is gone", o.err, o.retries, len(s.Requests()))
	}
}

// What another try may help against is tried again, each time with a signature of its own.
func TestBusyClouds(t *testing.T) {
	for name, open := range doors {
		for _, status := range []int{429, 503, 500} {
			s := serve(t, llmtest.Fail(status, "slow down"), llmtest.Text("ok"))
			if o := ask(t, open(t, s.URL)); o.err != nil || o.text != "ok" || o.retries != 1 {
				t.Errorf("%s, %d: got %+v, want a second try", name, status, o)
			}
		}
		s := serve(t, llmtest.Fail(400, "Input is too long for requested model: it exceeds the context window"))
		var failed *llm.Error
		if o := ask(t, open(t, s.URL)); !errors.As(o.err, &failed) || failed.Kind != llm.ContextOverflow {
			t.Errorf("%s: got %v, want %s", name, o.err, llm.ContextOverflow)
		}
	}
}

// A stream that ends too early is a cut reply, never a short one.
func TestCutStreams(t *testing.T) {
	for name, open := range doors {
		for n := 1; n < 6; n++ {
			for _, r := range []llmtest.Reply{llmtest.Text("some words that are long enough").CutEvent(n), llmtest.Text("some words that are long enough").CutByte(150 * n)} {
				if strings.HasPrefix(name, "azure") || strings.HasSuffix(name, "gemini") {
					continue // the same code as without a cloud, with its own tests
				}
				s := serve(t)
				s.Answer(func(llmtest.Request) llmtest.Reply { return r })
				var failed *llm.Error
				if o := ask(t, open(t, s.URL)); !errors.As(o.err, &failed) || failed.Kind != llm.Cut {
					t.Errorf("%s, %d: got %+v, want %s", name, n, o, llm.Cut)
				}
			}
		}
	}
}

// Bedrock's exceptions in the middle of a stream.
func TestExceptionsOfAStream(t *testing.T) {
	for exception, want := range map[string]llm.Kind{
		"throttlingException": llm.RateLimited, "serviceUnavailableException": llm.Overloaded, "internalServerException": llm.Server,
		"modelStreamErrorException": llm.Server, "modelTimeoutException": llm.Server, "validationException": llm.Invalid, "novelException": llm.Server,
	} {
		s := serve(t, llmtest.Text("some words that are long enough").ErrorEvent(4, exception, "it failed"))
		var failed *llm.Error
		if o := ask(t, bedrock(t, s.URL, sonnet)); !errors.As(o.err, &failed) || failed.Kind != want || failed.Message != "it failed" {
			t.Errorf("%s: got %v, want %s", exception, o.err, want)
		}
	}
}

// serviceAccount is a new account of Google's: its file, and its public key.
var serviceAccount = sync.OnceValues(func() (string, *rsa.PublicKey) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"type":"service_account","project_id":"p","client_email":"me@p.iam","private_key":%s,"token_uri":"TOKEN"}`, text), &key.PublicKey
})

// A service account's claim and a user's refresh token are exchanged for an access token, which is kept until shortly
// before its end.
func TestAccessTokens(t *testing.T) {
	account, public := serviceAccount()
	for name, file := range map[string]string{
		"a service account": account,
		"a user":            `{"type":"authorized_user","client_id":"c","client_secret":"secret-of-client","refresh_token":"refresh-of-mine","quota_project_id":"q","token_uri":"TOKEN"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.Answer(func(llmtest.Request) llmtest.Reply { return llmtest.Text("ok") })
			now := at
			s.Cloud = llmtest.Cloud{Account: "me@p.iam", Public: public, Refresh: "refresh-of-mine", Token: "none yet", Now: func() time.Time { return now }}
			c, err := cloud.ReadGoogle([]byte(strings.ReplaceAll(file, "TOKEN", s.URL+"/token")))
			if err != nil {
				t.Fatal(err)
			}
			p := vertex(t, s.URL, "claude-sonnet-4-6", func(o *cloud.VertexOptions) {
				o.Credentials, o.Now = c, func() time.Time { return now }
			})
			for _, step := range []struct {
				wait   time.Duration
				tokens int
			}{{0, 1}, {30 * time.Minute, 1}, {25 * time.Minute, 1}, {time.Minute, 2}, {time.Hour, 3}} {
				now = now.Add(step.wait)
				if o := ask(t, p); o.err != nil || s.Cloud.Tokens != step.tokens {
					t.Errorf("after %s: got %v and %d tokens, want %d", now.Sub(at), o.err, s.Cloud.Tokens, step.tokens)
				}
			}
			if got, is := s.Requests()[0].Header["X-Goog-User-Project"]; is != (c.QuotaProject != "") || is && got[0] != c.QuotaProject {
				t.Errorf("the quota of %q is used, want %q", got, c.QuotaProject)
			}
		})
	}
}

// What the token server refuses is not tried again, and no secret gets out.
func TestRefusedTokens(t *testing.T) {
	account, public := serviceAccount()
	for name, c := range map[string]struct {
		file string
		off  time.Duration
		lets *rsa.PublicKey
		says string
		try  string
	}{
		"a user who logged out": {`{"type":"authorized_user","client_id":"c","client_secret":"secret-of-client","refresh_token":"refresh-old","token_uri":"TOKEN"}`, 0, public, "expired or revoked", "gcloud auth application-default login"},
		"a deleted key":         {account, 0, nil, "Invalid JWT Signature", "a new key for the service account"},
		"a clock that is off":   {account, 2 * time.Hour, public, "reasonable timeframe", "set this machine's clock"},
	} {
		s := serve(t)
		s.Cloud = llmtest.Cloud{Account: "me@p.iam", Public: c.lets, Refresh: "refresh-of-mine", Now: func() time.Time { return at.Add(c.off) }}
		credentials, err := cloud.ReadGoogle([]byte(strings.ReplaceAll(c.file, "TOKEN", s.URL+"/token")))
		if err != nil {
			t.Fatal(err)
		}
		o := ask(t, vertex(t, s.URL, "gemini-2.5-pro", func(o *cloud.VertexOptions) { o.Credentials = credentials }))
		var failed *llm.Error
		if !errors.As(o.err, &failed) || failed.Kind != llm.Auth || o.retries > 0 || !strings.Contains(failed.Message, c.says) || !strings.Contains(failed.Try, c.try) {
			t.Errorf("%s: got %v after %d more tries, want %q and %q", name, o.err, o.retries, c.says, c.try)
		}
		if o.err != nil && (strings.Contains(o.err.Error(), "secret-of") || strings.Contains(o.err.Error(), "refresh-old")) {
			t.Errorf("%s: the error shows a secret: %v", name, o.err)
		}
		if len(s.Requests()) > 0 {
			t.Errorf("%s: the model was asked without a token", name)
		}
	}
}

// A token server that is down is tried again; one whose answer holds no token is not.
func TestTokenServers(t *testing.T) {
	status, body := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may be gone
	}))
	defer server.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, c := range []struct {
		status int
		body   string
		uri    string
		kind   llm.Kind
		tries  int
	}{
		{200, `{}`, server.URL, llm.Auth, 0},
		{200, `{"error":"x"}`, server.URL, llm.Auth, 0},
		{400, `{"access_token":"t","expires_in":100}`, server.URL, llm.Auth, 0},
		{401, `<html>`, server.URL, llm.Auth, 0},
		{503, `busy`, server.URL, llm.Overloaded, 4},
		{0, "", closed.URL, llm.Network, 4},
	} {
		status, body = c.status, c.body
		model := serve(t)
		o := ask(t, vertex(t, model.URL, "gemini-2.5-pro", func(o *cloud.VertexOptions) {
			o.Credentials = cloud.GoogleCredentials{Type: "authorized_user", ClientID: "c", RefreshToken: "refresh-of-mine", TokenURI: c.uri}
		}))
		var failed *llm.Error
		if !errors.As(o.err, &failed) || failed.Kind != c.kind || o.retries != c.tries || len(model.Requests()) > 0 {
			t.Errorf("%d %s: got %v after %d more tries, want %s after %d", c.status, c.body, o.err, o.retries, c.kind, c.tries)
		}
	}
}

// Files that hold no credentials that are read here, and what the error names.
func TestCredentialsThatAreNotRead(t *testing.T) {
	for file, want := range map[string]string{
		`{"type":"external_account","audience":"x"}`: `"external_account"`, `{`: "no JSON", `{"type":"service_account"}`: "no client_email or private_key",
		`{"type":"authorized_user","client_id":"c"}`:                                                                            "no client_id or refresh_token",
		`{"type":"authorized_user","client_id":"c","refresh_token":"r","token_uri":"http://169.254.169.254/token"}`:             "no https address",
		`{"type":"authorized_user","client_id":"c","refresh_token":"the-secret","token_uri":"https://oauth2.googleapis.com/t"}`: "",
	} {
		_, err := cloud.ReadGoogle([]byte(file))
		if got := fmt.Sprint(err); (err == nil) != (want == "") || want != "" && !strings.Contains(got, want) || strings.Contains(got, "the-secret") {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
	if c, err := cloud.ReadGoogle([]byte(`{"type":"authorized_user","client_id":"c","refresh_token":"r"}`)); err != nil || c.TokenURI != "https://oauth2.googleapis.com/token" {
		t.Errorf("got %v and %q, want Google's own token server", err, c.TokenURI)
	}
	s := serve(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"not a key", "-----BEGIN PRIVATE KEY-----\nbm90IGEga2V5\n-----END PRIVATE KEY-----", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))} {
		c := cloud.GoogleCredentials{Type: "service_account", PrivateKey: key, TokenURI: s.URL + "/token"}
		o := ask(t, vertex(t, s.URL, "gemini-2.5-pro", func(o *cloud.VertexOptions) { o.Credentials = c }))
		var failed *llm.Error
		if !errors.As(o.err, &failed) || failed.Kind != llm.Auth || o.retries > 0 || !strings.Contains(failed.Message, "private_key") || strings.Contains(failed.Message, key) {
			t.Errorf("got %v, want a refusal that names private_key and does not show it", o.err)
		}
	}
}

// A model has the price and the limits of its maker's, by whatever name a cloud sells it.
func TestPricesOfClouds(t *testing.T) {
	for _, c := range []struct{ provider, model, maker, plain string }{
		{"bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic", "claude-sonnet-4-5"},
		{"bedrock", sonnet, "anthropic", "claude-sonnet-4-5"},
		{"bedrock", "global." + strings.TrimPrefix(sonnet, "us."), "anthropic", "claude-sonnet-4-5"},
		{"bedrock", "eu.anthropic.claude-opus-4-6-v1", "anthropic", "claude-opus-4-6"},
		{"bedrock", arn, "anthropic", "claude-sonnet-4-5"},
		{"bedrock", "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-5-5", "anthropic", "claude-opus-5-5"},
		{"bedrock", "anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic", "claude-3-5-sonnet"},
		{"vertex", "claude-sonnet-4-5@20250929", "anthropic", "claude-sonnet-4-5"},
		{"vertex", "claude-opus-4-8", "anthropic", "claude-opus-4-8"},
		{"vertex", "claude-3-5-sonnet-v2@20241022", "anthropic", "claude-3-5-sonnet"},
		{"vertex", "claude-opus-4-6@default", "anthropic", "claude-opus-4-6"},
		{"vertex", "gemini-2.5-pro", "google", "gemini-2.5-pro"},
		{"azure", "gpt-5.1", "openai", "gpt-5.1"},
	} {
		want, known := catalogue.Find(c.maker, c.plain)
		got, is := catalogue.Find(c.provider, c.model)
		if d := cmp.Diff(want, got); !known || !is || d != "" {
			t.Errorf("%s %s: %v %v %s", c.provider, c.model, known, is, d)
		}
	}
	for _, c := range [][2]string{
		{"bedrock", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"}, {"bedrock", "anthropic.claude-next-9-v1:0"},
		{"bedrock", "claude-sonnet-4-5x"}, {"azure", "mine"}, {"vertex", "llama-4"},
	} {
		if m, is := catalogue.Find(c[0], c[1]); is {
			t.Errorf("%s is taken for %v", c[1], m.IDs)
		}
	}
	for _, o := range catalogue.Offers() {
		if _, is := catalogue.Find(o.Provider, o.ID); !is {
			t.Errorf("%s %s has no row", o.Provider, o.ID)
		}
	}
}
