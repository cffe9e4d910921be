package redact

import (
	"strings"
	"testing"
)

// planted are secrets of twenty kinds and more, in the places where tools come across
// them: settings, logs, commands, code, replies of servers. Each is put together here so
// that no scanner takes this file for a leak.
func planted() map[string][2]string {
	n := func(a *alphabet, size int) string { return fake(a, size) }
	return map[string][2]string{
		"an Anthropic key in an env file":      {"ANTHROPIC_API_KEY=", "sk-ant-" + "api03-" + n(alnum, 40)},
		"an OpenAI key in YAML":                {"openai_key: ", "sk-proj-" + n(alnum, 48)},
		"an older OpenAI key in a header":      {"Authorization: x-api-key ", "sk-" + n(alnum, 48)},
		"an OpenRouter key in JSON":            {`{"key": "`, "sk-or-v1-" + n(hex, 64)},
		"a GitHub token in an address":         {"git clone https://x-access-token:", "ghp_" + n(alnum, 36)},
		"a fine-grained GitHub token":          {"gh auth login --with-token <<< ", "github_pat_" + n(alnum, 60)},
		"a GitLab token in a CI file":          {"  PRIVATE-TOKEN: ", "glpat-" + n(alnum, 20)},
		"an AWS key id":                        {"aws_access_key_id = ", "AKIA" + strings.ToUpper(n(capital, 16))},
		"an AWS secret":                        {"aws_secret_access_key = ", n(base64s, 40)},
		"an AWS secret in JavaScript":          {"secretAccessKey: '", n(base64s, 40)},
		"an AWS secret of a bucket":            {"R2_SECRET_ACCESS_KEY=", n(base64s, 40)},
		"an AWS secret of a file system":       {"secret_access_key = ", n(base64s, 40)},
		"a GitLab job's token":                 {"CI_JOB_TOKEN=", "glcbt-64_" + n(alnum, 20)},
		"a GitLab trigger token":               {"curl -F token=", "glptt-" + n(hex, 40)},
		"an Atlassian token":                   {"JIRA_API_TOKEN=", "ATATT3xFfGF0" + n(word, 170) + "=" + n(capital, 8)},
		"a Grafana token":                      {"GRAFANA_TOKEN=", "glsa_" + n(alnum, 32) + "_" + n(hex, 8)},
		"a Sentry token":                       {"SENTRY_AUTH_TOKEN=", "sntrys_eyJ" + n(alnum, 60) + "_" + n(alnum, 43)},
		"a Tailscale key":                      {"tailscale up --authkey ", "tskey-auth-" + n(alnum, 17) + "-" + n(alnum, 32)},
		"a Notion token":                       {"NOTION_TOKEN=", "ntn_" + n(alnum, 46)},
		"a Figma token":                        {"X-Figma-Token: ", "figd_" + n(word, 40)},
		"a Slack token in a log":               {"posting with ", "xoxb-" + n(alnum, 40)},
		"a Slack webhook":                      {"curl -X POST https://", "hooks.slack.com/services/" + n(alnum, 9) + "/" + n(alnum, 9) + "/" + n(alnum, 24)},
		"a Google key in JavaScript":           {"const apiKey = '", "AIza" + n(alnum, 35)},
		"a Google token":                       {"access_token=", "ya29." + n(alnum, 60)},
		"a Stripe key":                         {"stripe.api_key = \"", "sk_live_" + n(alnum, 24)},
		"an npm token in .npmrc":               {"//registry.npmjs.org/:_authToken=", "npm_" + n(alnum, 36)},
		"a PyPI token":                         {"password = ", "pypi-AgEI" + n(alnum, 70)},
		"a Hugging Face token":                 {"export HF_TOKEN=", "hf_" + n(alnum, 34)},
		"a SendGrid key":                       {"SENDGRID=", "SG." + n(alnum, 22) + "." + n(alnum, 43)},
		"a Docker token":                       {"docker login -p ", "dckr_pat_" + n(alnum, 27)},
		"a DigitalOcean token":                 {"token: ", "dop_v1_" + n(hex, 64)},
		"a Vault token":                        {"VAULT_TOKEN=", "hvs." + n(alnum, 30)},
		"a Telegram bot's token":               {"bot", "123456789:AAE" + n(alnum, 32)},
		"a bearer token in a trace":            {"> Authorization: Bearer ", n(alnum, 40)},
		"a JSON web token in a cookie":         {"Cookie: session=", "eyJ" + n(alnum, 20) + ".eyJ" + n(alnum, 60) + "." + n(alnum, 43)},
		"a database password in an address":    {"DATABASE_URL=postgres://app:", n(alnum, 20) + "@db:5432/x"},
		"a private key in a file":              {"", "-----BEGIN RSA PRIVATE" + " KEY-----\n" + strings.Repeat(n(alnum, 64)+"\n", 12) + "-----END RSA PRIVATE" + " KEY-----"},
		"a private key in one line of JSON":    {`"private_key": "`, "-----BEGIN PRIVATE" + ` KEY-----\n` + strings.Repeat(n(alnum, 64)+`\n`, 12) + "-----END PRIVATE" + " KEY-----"},
		"an age key":                           {"# public key: age1\n", "AGE-SECRET-KEY-1" + strings.ToUpper(n(capital, 58))},
		"a configured key, whatever its shape": {"the key is ", "plain words as a key 7"},
	}
}

// TestTwentyKindsAreMaskedWhereToolsFindThem: the secret goes, all around it stays, and a
// text in which they all stand loses all of them.
func TestTwentyKindsAreMaskedWhereToolsFindThem(t *testing.T) {
	r := New(Known{Kind: "configured", Value: "plain words as a key 7"})
	all := planted()
	if len(all) < 20 {
		t.Fatalf("only %d kinds", len(all))
	}
	var together strings.Builder
	for name, p := range all {
		text := "first line\n" + p[0] + p[1] + "\nlast line\n"
		together.WriteString(text)
		got, n := r.String(text)
		if n == 0 || strings.Contains(got, p[1]) {
			t.Errorf("%s is left: %q", name, got)
		}
		if secret := p[1][len(p[1])/2:]; len(secret) > 12 && !strings.Contains(secret, "@db") && strings.Contains(got, secret[:12]) {
			t.Errorf("%s: half of it is left: %q", name, got)
		}
		if !strings.HasPrefix(got, "first line\n") || !strings.HasSuffix(got, "\nlast line\n") {
			t.Errorf("%s: what stood around it is gone: %q", name, got)
		}
	}
	got, n := r.String(together.String())
	if n < len(all) {
		t.Errorf("%d of %d are masked together", n, len(all))
	}
	for name, p := range all {
		if strings.Contains(got, p[1]) {
			t.Errorf("%s is left among the others", name)
		}
	}
}

// What looks like a password in an address and is none that anybody uses.
func TestAddressesOfExamples(t *testing.T) {
	r := New()
	for _, s := range []string{
		"https://aladdin:opensesame@host", "http://My%20User:My%20Pass@host/", "http://user:pa%2Fssword@host", "http://jane:letmein@host", "http://gopher:gopher@host", "ftp://a:PASSWORD@host",
	} {
		if got, n := r.String(s); n != 0 {
			t.Errorf("%q became %q", s, got)
		}
	}
	for _, s := range []string{"https://u:hunter22@h", "https://u:SomeLongSecretPhrase@h", "https://u:a%20b-c4-d@h"} {
		if _, n := r.String(s); n != 1 {
			t.Errorf("%q is left", s)
		}
	}
}
