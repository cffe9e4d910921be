package redact

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/roost-dev/roost/internal/lazyregexp"
)

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
	distinct := 0
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			distinct++
		}
	}
	return distinct >= 8 && (len(s) >= 40 || strings.ContainsAny(s, digits)) &&
		!strings.Contains(s, "EXAMPLE") && !strings.Contains(s, "example")
}

// rules are tried in this order at a keyword; the first that fits wins. A row may have several keywords.
var rules = eachKeyword([]rule{
	{kind: "anthropic-key", keyword: "sk-ant-", body: word, min: 20},
	{kind: "openrouter-key", keyword: "sk-or-v1-", body: hex, min: 32},
	{kind: "openai-key", keyword: "sk-proj-|sk-svcacct-|sk-admin-", body: word, min: 20},
	{kind: "api-key", keyword: "sk-", body: alnum, min: 32, max: 64},
	{kind: "stripe-key", keyword: "sk_live_|sk_test_|rk_live_", body: alnum, min: 20},
	{kind: "stripe-webhook", keyword: "whsec_", body: base64s, min: 24},
	{kind: "github-token", keyword: "ghp_|gho_|ghu_|ghr_", body: alnum, min: 36, max: 255},
	{kind: "github-token", keyword: "ghs_", body: wordDot, min: 36},
	{kind: "github-token", keyword: "github_pat_", body: word, min: 40, max: 255},
	{kind: "gitlab-token", keyword: "glpat-|glrt-|gldt-", body: wordDot, min: 20, max: 300},
	{kind: "aws-key-id", keyword: "AKIA|ASIA", body: capital, min: 16, max: 16},
	{kind: "aws-secret", keyword: "aws_secret_access_key|AWS_SECRET_ACCESS_KEY|SecretAccessKey",
		special: assigned(base64s, 40, 40), free: true},
	{kind: "slack-token", keyword: "xoxb-|xoxp-|xoxa-|xoxr-|xoxs-|xoxe-|xapp-", body: word, min: 20},
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
	{kind: "twilio-key", keyword: "SK|AC", body: hex, min: 32, max: 32},
	{kind: "azure-key", keyword: "AccountKey=", special: follows(base64s, 86, 88), free: true},
	{kind: "azure-key", keyword: "SharedAccessKey=", special: follows(base64s, 43, 44), free: true},
	{kind: "doppler-token", keyword: "dp.pt.|dp.ct.|dp.sa.|dp.scim.|dp.audit.", body: alnum, min: 40, max: 44},
	{kind: "doppler-token", keyword: "dp.st.", body: wordDot, min: 40, max: 100},
	{kind: "google-key-id", keyword: "private_key_id", special: assigned(hex, 40, 40), free: true},
	{kind: "npm-token", keyword: "_authToken=", special: follows(npmTokens, 16, maxToken), free: true},
	{kind: "npm-token", keyword: ":_auth=", special: follows(base64s, 16, maxToken), free: true},
	{kind: "npm-token", keyword: ":_password=", special: follows(base64s, 12, maxToken), free: true},
	{kind: "password", keyword: "PASSWORD=", special: password, free: true},
	{kind: "password", keyword: "machine ", special: netrc},
	{kind: "session-cookie", keyword: "ookie", special: cookie, free: true},
	{kind: "basic-login", keyword: "Basic |basic ", special: basic},
	{kind: "age-key", keyword: "AGE-SECRET-KEY-1", body: capital, min: 58, max: 58},
	{kind: "jwt", keyword: "eyJ", special: jwt},
	{kind: "bearer-token", keyword: "Bearer |bearer ", special: bearer},
	{kind: "private-key", keyword: "-----BEGIN ", special: privateKey, free: true},
	{kind: "url-password", keyword: "://", special: urlPassword, free: true},
	// A Discord bot's token begins with its number, in base64: with one of these.
	{kind: "discord-token", keyword: "MD|MT|Mj|Mz|ND|NT|Nj|Nz|OD|OT", special: discord},
})

func eachKeyword(rows []rule) (out []rule) {
	for _, r := range rows {
		for keyword := range strings.SplitSeq(r.keyword, "|") {
			r.keyword = keyword
			out = append(out, r)
		}
	}
	return out
}

// behind masks a value of least to most bytes that follows the keyword, with some bytes of gap in between.
func behind(gap *alphabet, gapLeast, gapMost int, body *alphabet, least, most int) func(string, int, bool) (int, int, bool) {
	return func(s string, at int, final bool) (int, int, bool) {
		n, more := run(s, at, gap, gapMost, final)
		if more || n < gapLeast {
			return 0, 0, more
		}
		at += n
		n, more = run(s, at, body, most+1, final)
		if more || n < least || n > most || !random(s[at:at+n]) {
			return 0, 0, more
		}
		return at, at + n, false
	}
}

// assigned wants a name, an assignment and a value.
func assigned(body *alphabet, least, most int) func(string, int, bool) (int, int, bool) {
	return behind(letters(" \t:='\"\\>,"), 1, 8, body, least, most)
}

func bearer(s string, at int, final bool) (int, int, bool) {
	n, more := run(s, at, bearers, 4096, final)
	if more || n < 20 || !random(s[at:at+n]) {
		return 0, 0, more
	}
	return at, at + n, false
}

// jwt: two JSON objects and a signature.
func jwt(s string, at int, final bool) (int, int, bool) {
	end := at
	for part := range 3 {
		if part == 1 && !strings.HasPrefix(s[end:], "eyJ") {
			return 0, 0, !final && strings.HasPrefix("eyJ", s[end:])
		}
		n, more := run(s, end, word, 4096, final)
		if more || n < 8 {
			return 0, 0, more
		}
		end += n
		if part == 2 {
			return at - len("eyJ"), end, false
		}
		if end == len(s) {
			return 0, 0, !final
		}
		if s[end] != '.' {
			return 0, 0, false
		}
		end++
	}
	return 0, 0, false
}

const maxKey = 16 << 10

var (
	dash    = letters("-")
	keyHead = letters(upper + digits + " ")
	keyBody = letters(lower + upper + digits + "+/=-:,.;()\\ \t\r\n\"'|>")
)

// privateKey masks the block between its markers, or what there is of it.
func privateKey(s string, at int, final bool) (int, int, bool) {
	n, more := run(s, at, keyHead, 40, final)
	if more || !strings.HasSuffix(s[at:at+n], "PRIVATE KEY") && !strings.HasSuffix(s[at:at+n], "PRIVATE KEY BLOCK") {
		return 0, 0, more
	}
	start := at - len("-----BEGIN ")
	rest := s[at+n:]
	if len(rest) < 5 && !final {
		return 0, 0, true
	}
	if !strings.HasPrefix(rest, "-----") {
		return 0, 0, false
	}
	body := at + n + 5
	// The search for the end stops where the body's characters stop: the mask must not depend on how much of the text
	// has come.
	k, more := run(s, body, keyBody, maxKey, final)
	end := strings.Index(s[body:body+k], "-----END ")
	if more || k < 64 && end < 0 {
		return 0, 0, more
	}
	if end >= 0 {
		if end < 64 && !keyed(s[body:body+end]) {
			return 0, 0, false // code about keys
		}
		tail := body + end + len("-----END ")
		n, more := run(s, tail, keyHead, 40, final)
		if more {
			return 0, 0, true
		}
		dashes, more := run(s, tail+n, dash, 5, final)
		if more {
			return 0, 0, true
		}
		return start, tail + n + dashes, false
	}
	return start, body + k, false
}

// keyed reports whether a short block holds a key and not code that puts one together.
func keyed(block string) bool {
	var found strings.Builder
	for _, part := range strings.FieldsFunc(block, func(r rune) bool { return r > 127 || !base64s[r] }) {
		if len(part) >= 16 {
			found.WriteString(part)
		}
	}
	return found.Len() >= 32 && random(found.String())
}

var userInfo = letters(lower + upper + digits + "-._~!$&()*+,;=:%#^|`")

// urlPassword masks the password in scheme://user:password@host.
func urlPassword(s string, at int, final bool) (int, int, bool) {
	n, more := run(s, at, userInfo, 512, final)
	if more {
		return 0, 0, true
	}
	colon := strings.IndexByte(s[at:at+n], ':')
	if colon < 0 || at+n >= len(s) || s[at+n] != '@' {
		return 0, 0, false
	}
	from, to := at+colon+1, at+n
	value := s[from:to]
	if len(value) < 6 || strings.ContainsAny(value[:1], "$%*") || strings.Trim(value, "*x.X") == "" {
		return 0, 0, false // short, a variable or already masked
	}
	if !made(escapes().ReplaceAllString(value, "")) { // the digits of an escape are no sign of a password
		return 0, 0, false
	}
	return from, to, false
}

var escapes = lazyregexp.New(`%[0-9A-Za-z]{2}`)

// made reports whether a password has a digit, or is long and has letters of both cases. Passwords of plain words, like
// "changeme", are left: examples and code with addresses are full of those.
func made(s string) bool {
	return strings.ContainsAny(s, digits) || len(s) >= 12 && strings.ContainsAny(s, lower) && strings.ContainsAny(s, upper)
}

// follows wants a value right behind the keyword, perhaps in quotes.
func follows(body *alphabet, least, most int) func(string, int, bool) (int, int, bool) {
	return behind(letters("\"'"), 0, 1, body, least, most)
}

// secretive reports whether a password looks like a real one, and not like a word, a variable or a mask.
func secretive(value string) bool {
	return len(value) >= 6 && !strings.ContainsAny(value[:1], "$%*<{[(") && strings.Trim(value, "*x.X") != "" && made(value)
}

const passwordText = lower + upper + digits + "!#$%&*+-./:<=>?@^_`{|}~[]()"

var (
	passwords    = letters(passwordText)
	netrcSecrets = letters(strings.NewReplacer("(", "", ")", "").Replace(passwordText)) // one may be in parentheses
)

// password masks the value of NAME_PASSWORD=value as files of variables and shells have it.
func password(s string, at int, final bool) (int, int, bool) {
	quote := letters("\"'")
	q, more := run(s, at, quote, 1, final)
	if more {
		return 0, 0, true
	}
	n, more := run(s, at+q, passwords, 512, final)
	if more {
		return 0, 0, true
	}
	value := s[at+q : at+q+n]
	if strings.ContainsAny(value, "()[]{}<>") || !secretive(value) { // a call or a placeholder
		return 0, 0, false
	}
	return at + q, at + q + n, false
}

// netrc masks the password in: machine HOST login NAME password VALUE.
func netrc(s string, at int, final bool) (int, int, bool) {
	blank, field := letters(" \t\r\n"), passwords
	for _, want := range []string{"", "login", "", "password"} {
		n, more := run(s, at, field, 256, final)
		if more || n == 0 || want != "" && s[at:at+n] != want {
			return 0, 0, more
		}
		gap, more := run(s, at+n, blank, 32, final)
		if more || gap == 0 {
			return 0, 0, more
		}
		at += n + gap
	}
	n, more := run(s, at, netrcSecrets, 256, final)
	if more || !secretive(s[at:at+n]) {
		return 0, 0, more
	}
	return at, at + n, false
}

// basic masks a user's name and password in the header of a request.
func basic(s string, at int, final bool) (int, int, bool) {
	n, more := run(s, at, base64s, 1024, final)
	if more || n < 8 {
		return 0, 0, more
	}
	text, err := base64.StdEncoding.DecodeString(s[at : at+n])
	if err != nil {
		return 0, 0, false
	}
	_, secret, ok := strings.Cut(string(text), ":")
	if !ok || !secretive(secret) || bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return 0, 0, false
	}
	return at, at + n, false
}

// discord wants the bot's number in base64, a time and a signature.
func discord(s string, at int, final bool) (int, int, bool) {
	from := at - len("MD")
	n, more := run(s, from, alnum, 29, final)
	if more || n < 23 || n > 28 {
		return 0, 0, more
	}
	number, err := base64.RawStdEncoding.DecodeString(s[from : from+n])
	if err != nil || strings.Trim(string(number), digits) != "" {
		return 0, 0, false
	}
	end := from + n
	for _, size := range [][2]int{{6, 7}, {27, 45}} {
		dot, more := run(s, end, letters("."), 1, final)
		if more || dot == 0 {
			return 0, 0, more
		}
		n, more := run(s, end+1, word, size[1]+1, final)
		if more || n < size[0] || n > size[1] {
			return 0, 0, more
		}
		end += 1 + n
	}
	return from, end, false
}

var (
	cookieGap  = letters(" \t:\"'\\")
	cookieText = letters(lower + upper + digits + "!#$%&()*+-./:<=>?@[]^_`{|}~; ")
)

// cookie masks the values of cookies that represent a log-in, in the headers Cookie and Set-Cookie: from the first
// one to the last one.
func cookie(s string, at int, final bool) (int, int, bool) {
	gap, more := run(s, at, cookieGap, 8, final)
	if more || !strings.Contains(s[at:at+gap], ":") {
		return 0, 0, more
	}
	at += gap
	n, more := run(s, at, cookieText, 4096, final)
	if more {
		return 0, 0, true
	}
	from, to := 0, 0
	for start, rest := at, s[at:at+n]; rest != ""; {
		pair, behind, _ := strings.Cut(rest, ";")
		name, value, ok := strings.Cut(pair, "=")
		if value = strings.TrimRight(value, " "); ok && login().MatchString(name) && len(value) >= 16 && random(value) {
			if from == 0 {
				from = start + len(name) + 1
			}
			to = start + len(name) + 1 + len(value)
		}
		start, rest = start+len(rest)-len(behind), behind
	}
	return from, to, false
}

// login matches the names of cookies that represent a log-in.
var login = lazyregexp.New(`(?i)sess|auth|token|jwt|sid\s*$`)
