package redact

import "strings"

// alphabet is a set of bytes.
type alphabet [256]bool

func letters(s string) *alphabet {
	var a alphabet
	for i := range len(s) {
		a[s[i]] = true
	}
	return &a
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

var (
	alnum   = letters(lower + upper + digits)
	word    = letters(lower + upper + digits + "_-")
	wordDot = letters(lower + upper + digits + "_-.")
	capital = letters(upper + digits)
	hex     = letters(digits + "abcdef")
	base64s = letters(lower + upper + digits + "+/=_-")
	bearers = letters(lower + upper + digits + "-._~+/=")

	npmTokens = letters(lower + upper + digits + "-._+/=")
)

// rule is one kind of secret: a keyword and what must follow it.
type rule struct {
	kind    string
	keyword string
	body    *alphabet
	min     int // of the body
	max     int // 0 = maxToken; a longer run is no secret of this kind
	free    bool
	behind  *alphabet // of the byte in front of the keyword; nil = free decides
	special func(s string, at int, final bool) (from, to int, more bool)
}

const maxToken = 1024

// rules are tried in this order at a keyword; the first that fits wins.
var rules = []rule{
	{kind: "anthropic-key", keyword: "sk-ant-", body: word, min: 20},
	{kind: "openrouter-key", keyword: "sk-or-v1-", body: hex, min: 32},
	{kind: "openai-key", keyword: "sk-proj-", body: word, min: 20},
	{kind: "openai-key", keyword: "sk-svcacct-", body: word, min: 20},
	{kind: "openai-key", keyword: "sk-admin-", body: word, min: 20},
	{kind: "api-key", keyword: "sk-", body: alnum, min: 32, max: 64},
	{kind: "stripe-key", keyword: "sk_live_", body: alnum, min: 20},
	{kind: "stripe-key", keyword: "sk_test_", body: alnum, min: 20},
	{kind: "stripe-key", keyword: "rk_live_", body: alnum, min: 20},
	{kind: "stripe-webhook", keyword: "whsec_", body: base64s, min: 24},
	{kind: "github-token", keyword: "ghp_", body: alnum, min: 36, max: 255},
	{kind: "github-token", keyword: "gho_", body: alnum, min: 36, max: 255},
	{kind: "github-token", keyword: "ghu_", body: alnum, min: 36, max: 255},
	{kind: "github-token", keyword: "ghs_", body: wordDot, min: 36},
	{kind: "github-token", keyword: "ghr_", body: alnum, min: 36, max: 255},
	{kind: "github-token", keyword: "github_pat_", body: word, min: 40, max: 255},
	{kind: "gitlab-token", keyword: "glpat-", body: wordDot, min: 20, max: 300},
	{kind: "gitlab-token", keyword: "glrt-", body: wordDot, min: 20, max: 300},
	{kind: "gitlab-token", keyword: "gldt-", body: wordDot, min: 20, max: 300},
	{kind: "aws-key-id", keyword: "AKIA", body: capital, min: 16, max: 16},
	{kind: "aws-key-id", keyword: "ASIA", body: capital, min: 16, max: 16},
	{kind: "aws-secret", keyword: "aws_secret_access_key", special: assigned(base64s, 40, 40), free: true},
	{kind: "aws-secret", keyword: "AWS_SECRET_ACCESS_KEY", special: assigned(base64s, 40, 40), free: true},
	{kind: "aws-secret", keyword: "SecretAccessKey", special: assigned(base64s, 40, 40), free: true},
	{kind: "slack-token", keyword: "xoxb-", body: word, min: 20},
	{kind: "slack-token", keyword: "xoxp-", body: word, min: 20},
	{kind: "slack-token", keyword: "xoxa-", body: word, min: 20},
	{kind: "slack-token", keyword: "xoxr-", body: word, min: 20},
	{kind: "slack-token", keyword: "xoxs-", body: word, min: 20},
	{kind: "slack-token", keyword: "xoxe-", body: word, min: 20},
	{kind: "slack-token", keyword: "xapp-", body: word, min: 20},
	{kind: "slack-webhook", keyword: "hooks.slack.com/services/", body: letters(lower + upper + digits + "/"), min: 30, free: true},
	{kind: "google-key", keyword: "AIza", body: word, min: 35, max: 35},
	{kind: "google-token", keyword: "ya29.", body: wordDot, min: 20},
	{kind: "google-secret", keyword: "GOCSPX-", body: word, min: 28, max: 28},
	{kind: "groq-key", keyword: "gsk_", body: alnum, min: 40},
	{kind: "xai-key", keyword: "xai-", body: alnum, min: 60},
	{kind: "huggingface-token", keyword: "hf_", body: alnum, min: 30, max: 60},
	{kind: "replicate-token", keyword: "r8_", body: alnum, min: 37, max: 40},
	{kind: "perplexity-key", keyword: "pplx-", body: alnum, min: 40},
	{kind: "npm-token", keyword: "npm_", body: alnum, min: 36, max: 36},
	{kind: "pypi-token", keyword: "pypi-AgEI", body: word, min: 50},
	{kind: "docker-token", keyword: "dckr_pat_", body: word, min: 24},
	{kind: "digitalocean-token", keyword: "dop_v1_", body: hex, min: 64, max: 64},
	{kind: "sendgrid-key", keyword: "SG.", body: wordDot, min: 60, max: 70},
	{kind: "shopify-token", keyword: "shpat_", body: letters(digits + "abcdefABCDEF"), min: 32, max: 32},
	{kind: "linear-key", keyword: "lin_api_", body: alnum, min: 40},
	{kind: "vault-token", keyword: "hvs.", body: word, min: 24},
	{kind: "databricks-token", keyword: "dapi", body: hex, min: 32, max: 32},
	{kind: "telegram-token", keyword: ":AA", body: word, min: 33, max: 33, behind: letters(digits)},
	{kind: "twilio-key", keyword: "SK", body: hex, min: 32, max: 32},
	{kind: "twilio-key", keyword: "AC", body: hex, min: 32, max: 32},
	{kind: "azure-key", keyword: "AccountKey=", special: follows(base64s, 86, 88), free: true},
	{kind: "azure-key", keyword: "SharedAccessKey=", special: follows(base64s, 43, 44), free: true},
	{kind: "doppler-token", keyword: "dp.pt.", body: alnum, min: 40, max: 44},
	{kind: "doppler-token", keyword: "dp.ct.", body: alnum, min: 40, max: 44},
	{kind: "doppler-token", keyword: "dp.st.", body: wordDot, min: 40, max: 100},
	{kind: "doppler-token", keyword: "dp.sa.", body: alnum, min: 40, max: 44},
	{kind: "doppler-token", keyword: "dp.scim.", body: alnum, min: 40, max: 44},
	{kind: "doppler-token", keyword: "dp.audit.", body: alnum, min: 40, max: 44},
	{kind: "google-key-id", keyword: "private_key_id", special: assigned(hex, 40, 40), free: true},
	{kind: "npm-token", keyword: "_authToken=", special: follows(npmTokens, 16, maxToken), free: true},
	{kind: "npm-token", keyword: ":_auth=", special: follows(base64s, 16, maxToken), free: true},
	{kind: "npm-token", keyword: ":_password=", special: follows(base64s, 12, maxToken), free: true},
	{kind: "password", keyword: "PASSWORD=", special: password, free: true},
	{kind: "password", keyword: "machine ", special: netrc},
	{kind: "session-cookie", keyword: "ookie", special: cookie, free: true},
	{kind: "basic-login", keyword: "Basic ", special: basic},
	{kind: "basic-login", keyword: "basic ", special: basic},
	{kind: "age-key", keyword: "AGE-SECRET-KEY-1", body: capital, min: 58, max: 58},
	{kind: "jwt", keyword: "eyJ", special: jwt},
	{kind: "bearer-token", keyword: "Bearer ", special: bearer},
	{kind: "bearer-token", keyword: "bearer ", special: bearer},
	{kind: "private-key", keyword: "-----BEGIN ", special: privateKey, free: true},
	{kind: "url-password", keyword: "://", special: urlPassword, free: true},
}

// A Discord bot's token begins with its number, in base64: with one of these.
func init() {
	for _, start := range []string{"MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"} {
		rules = append(rules, rule{kind: "discord-token", keyword: start, special: discord})
	}
}

// run measures how far s[at:] stays in a, up to limit bytes. more: it reaches the
// end of s, which is not the end of the text.
func run(s string, at int, a *alphabet, limit int, final bool) (n int, more bool) {
	for n < limit && at+n < len(s) && a[s[at+n]] {
		n++
	}
	return n, !final && n < limit && at+n == len(s)
}

// random reports whether s looks like the output of a machine rather than of a writer of examples.
func random(s string) bool {
	var seen [256]bool
	distinct, number := 0, false
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			distinct++
		}
		number = number || s[i] >= '0' && s[i] <= '9'
	}
	return distinct >= 8 && (number || len(s) >= 40) && !strings.Contains(s, "EXAMPLE") && !strings.Contains(s, "example")
}
