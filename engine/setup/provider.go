package setup

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
	"github.com/roost-dev/roost/llm/google"
	"github.com/roost-dev/roost/llm/openai"
	"github.com/roost-dev/roost/llm/script"
	"github.com/roost-dev/roost/llm/wire"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/task"
)

// providerEntry is how a provider is configured and opened.
type providerEntry struct {
	keys  []string // variables that may hold its key; the first one that is set counts
	base  string   // variable of its address
	free  bool     // works without a key
	model string   // the default; "" = a model has to be named
	open  func(key, base string, s task.Settings) llm.Provider
}

// providers are those that ask a model over a network.
var providers = map[string]providerEntry{
	"anthropic": {
		keys: []string{"ANTHROPIC_API_KEY"}, base: "ANTHROPIC_BASE_URL", model: "claude-sonnet-5-5",
		open: func(key, base string, s task.Settings) llm.Provider {
			return anthropic.New(anthropic.Options{APIKey: key, BaseURL: base, Model: s.Model, Effort: s.Effort})
		},
	},
	"openai": {
		keys: []string{"OPENAI_API_KEY"}, base: "OPENAI_BASE_URL", model: "gpt-6.2-sol",
		open: func(key, base string, s task.Settings) llm.Provider {
			return openai.New(openai.Options{APIKey: key, BaseURL: base, Model: s.Model, Effort: s.Effort})
		},
	},
	"google": {
		keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, base: "GOOGLE_BASE_URL", model: "gemini-2.5-pro",
		open: func(key, base string, s task.Settings) llm.Provider {
			return google.New(google.Options{APIKey: key, BaseURL: base, Model: s.Model, Effort: s.Effort})
		},
	},
	"openai-compatible": {
		keys: []string{"OPENAI_COMPATIBLE_API_KEY", "OPENROUTER_API_KEY"}, base: "OPENAI_COMPATIBLE_BASE_URL", free: true,
		open: func(key, base string, s task.Settings) llm.Provider {
			return openai.New(openai.Options{Compatible: true, APIKey: key, BaseURL: base, Model: s.Model, Effort: s.Effort})
		},
	},
}

// preferred are the providers that are used when none is named: the first one that has a key.
var preferred = []string{"anthropic", "openai", "google"}

// Provider is an open provider and what must never be shown of it.
type Provider struct {
	LLM   llm.Provider
	Masks *redact.Redactor
}

// Provider opens the provider that a task names. No other provider is ever used in its place.
func (r Resolver) Provider(s task.Settings) (Provider, error) {
	c := r.Config
	var known []redact.Known
	for name, key := range c.Keys {
		known = append(known, redact.Known{Kind: name + "-key", Value: key})
	}
	for _, p := range c.Profiles {
		if p.Key != "" {
			known = append(known, redact.Known{Kind: p.Provider + "-key", Value: p.Key})
		}
	}
	servers, _ := c.MCPServers(s.Workspace)
	known = append(known, mcp.Secrets(servers, s.Workspace, c.getenv)...)
	late, lateErr := c.lateKey(s)
	if late != "" {
		known = append(known, redact.Known{Kind: s.Provider + "-key", Value: late})
	}
	choice := Provider{Masks: redact.New(known...)}
	if lateErr != nil {
		return choice, lateErr
	}
	switch s.Provider {
	case "":
		return choice, &Error{
			What: "ask a model",
			Why:  "no provider is named and no key was found",
			Try: "roost auth set anthropic  # or openai, google; or set ANTHROPIC_API_KEY, OPENAI_API_KEY or " +
				"GEMINI_API_KEY. roost try needs no key",
		}
	case "script":
		choice.LLM = script.Default()
		if s.Model != "" && s.Model != "demo" {
			model, err := script.Load(s.Model)
			if err != nil {
				return choice, &Error{"load the script " + s.Model, err.Error(), "name a YAML file with --model"}
			}
			choice.LLM = model
		}
		return choice, nil
	}
	p, is := providers[s.Provider]
	if !is {
		return choice, &Error{"ask " + s.Provider, "this version has no such provider",
			"roost help run  # --provider is anthropic, openai, google, openai-compatible or script"}
	}
	key, base := cmp.Or(c.Keys[s.Provider], late), cmp.Or(s.BaseURL, c.BaseURLs[s.Provider])
	if s.Account != "" {
		if key = c.Profiles[s.Account].Key; key == "" {
			return choice, &Error{
				What: "ask " + s.Provider + " with the key of the profile " + s.Account,
				Why:  "that key is missing, and no other key replaces it",
				Try:  "roost auth set --profile " + s.Account + ", or resume with --profile or --provider",
			}
		}
	}
	if err := checkAddress(base, "providers."+s.Provider+".base_url, or "+p.base); err != nil {
		return choice, err
	}
	if s.Account == "" && p.free && leaksKey(key, base) {
		key = ""
	}
	switch {
	case key == "" && !p.free:
		return choice, &Error{"ask " + s.Provider, "there is no key",
			"roost auth set " + s.Provider + "  # or set " + p.keys[0]}
	case base == "" && p.free:
		return choice, &Error{
			What: "ask " + s.Provider,
			Why:  "no address is named",
			Try:  "roost config set providers." + s.Provider + ".base_url http://127.0.0.1:11434/v1  # or --base-url, or set " + p.base,
		}
	case s.Model == "" && p.model == "":
		return choice, &Error{"ask " + s.Provider, "no model is named",
			"roost models --provider " + s.Provider + "  # and name one with --model"}
	}
	choice.LLM = p.open(key, base, s)
	return choice, nil
}

// leaksKey reports whether a key is OpenRouter's and the address is another server's: many servers are configured as
// openai-compatible, and the key of one must not be sent to another.
func leaksKey(key, base string) bool {
	if !strings.HasPrefix(key, "sk-or-") {
		return false
	}
	u, err := url.Parse(base)
	return err != nil || u.Hostname() != "openrouter.ai" && !strings.HasSuffix(u.Hostname(), ".openrouter.ai")
}

// CheckAddress refuses a provider's address that holds a name or password.
func CheckAddress(base string) error { return wire.CheckAddress(base) }

// checkAddress refuses an address with a user's name or password in it: the journal would hold it, and views of the
// task would show it.
func checkAddress(base, where string) error {
	if err := wire.CheckAddress(base); err != nil {
		return &Error{"ask a model at its address", err.Error(),
			"name the address without it (" + where + "), and keep the key apart: roost auth set PROVIDER"}
	}
	return nil
}
