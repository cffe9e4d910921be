package failure

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/llm"
)

// A run that the same request would end again is not told to go on as it is.
func TestProviderAdvice(t *testing.T) {
	for _, tt := range []struct {
		err      llm.Error
		try, why string
	}{
		{llm.Error{Kind: llm.Auth, Status: 401, Message: "invalid x-api-key"}, "roost auth set openai && roost resume id  # a key in OPENAI_API_KEY overrides it", ""},
		{llm.Error{Kind: llm.Invalid, Status: 404, Message: "model: foo"}, "roost resume id --model NAME  # roost models --provider openai", ""},
		{llm.Error{Kind: llm.Invalid, Status: 400, Message: "The model `foo` does not exist"}, "roost resume id --model NAME", ""},
		{llm.Error{Kind: llm.Invalid, Status: 400, Message: "gemma:2b does not support tools"}, "roost resume id --model NAME", "call tools"},
		{llm.Error{Kind: llm.Invalid, Status: 404, Message: "No endpoints found that support tool use"}, "roost resume id --model NAME", "call tools"},
		{llm.Error{Kind: llm.Invalid, Status: 404, Message: "404 page not found"}, "roost resume id --base-url URL", "no such page"},
		{llm.Error{Kind: llm.Invalid, Status: 400, Message: "messages: too few"}, "roost resume id", ""},
		{llm.Error{Kind: llm.Network, Message: "connection refused"}, "roost resume id", ""},
		{llm.Error{Kind: llm.Network, Message: "refused", Err: llm.ErrNotRunning}, "roost resume id  # once the model server runs", ""},
		{llm.Error{Kind: llm.Network, Message: "refused", Err: llm.ErrRefused}, "roost resume id  # once the model server runs", ""},
		{llm.Error{Kind: llm.Network, Message: "unknown", Err: llm.ErrUnknownHost}, "roost resume id  # or with --base-url URL", ""},
		{llm.Error{Kind: llm.Network, Message: "untrusted", Err: llm.ErrCertificate}, "roost resume id  # with SSL_CERT_FILE=FILE", ""},
		{llm.Error{Kind: llm.Network, Message: "malformed", Err: llm.ErrNotHTTP}, "roost resume id --base-url URL", ""},
		{llm.Error{Kind: llm.Network, Message: "407", Err: llm.ErrProxy}, "roost resume id  # after correcting HTTPS_PROXY", ""},
		{llm.Error{Kind: llm.Network, Message: "unreachable", Err: llm.ErrOffline}, "roost resume id  # once this machine is online", ""},
		{llm.Error{Kind: llm.Auth, Status: 429, Message: "quota", Err: llm.ErrCredit}, "roost resume id  # with credit from https://platform.openai.com/settings/organization/billing; or with --provider NAME or --model NAME", "no credit left"},
		{llm.Error{Kind: llm.Server, Status: 502, Message: "model not found upstream"}, "roost resume id", ""},
	} {
		tt.err.Provider = "openai"
		code := "provider"
		if tt.err.Kind == llm.Auth {
			code = "auth"
		}
		f := OfOutcome("id", engine.Outcome{State: "failed", Code: code, Reason: tt.err.Error(), Err: fmt.Errorf("turn 3: %w", &tt.err)}, 0)
		if !strings.HasPrefix(f.Try, tt.try) || tt.try == "roost resume id" && f.Try != tt.try || !strings.Contains(f.Why, tt.why) || !strings.Contains(f.Why, tt.err.Message) {
			t.Errorf("%v: try %q, why %q", tt.err.Error(), f.Try, f.Why)
		}
	}
	if f := OfOutcome("id", engine.Outcome{State: "failed", Err: errors.New("why")}, 0); f.Try != "roost resume id" || f.Why != "why" {
		t.Errorf(`got %+v, want f.Try = "roost resume id" and f.Why = "why"`, f)
	}
}
