package redact

import "strings"

// assigned wants name, an assignment and a value.
func assigned(body *alphabet, least, most int) func(string, int, bool) (int, int, bool) {
	between := letters(" \t:='\"\\>,")
	return func(s string, at int, final bool) (int, int, bool) {
		gap, more := run(s, at, between, 8, final)
		if more || gap == 0 {
			return 0, 0, more
		}
		n, more := run(s, at+gap, body, most+1, final)
		if more || n < least || n > most || !random(s[at+gap:at+gap+n]) {
			return 0, 0, more
		}
		return at + gap, at + gap + n, false
	}
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
			return 0, 0, false // code that speaks of keys
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

var (
	userInfo = letters(lower + upper + digits + "-._~!$&()*+,;=:%#^|`")
	shown    = []string{"password", "passwd", "pass", "pwd", "secret", "token", "user", "changeme", "postgres", "mysql",
		"root", "admin", "test", "guest", "example"}
)

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
	bare := unescaped(value)
	for _, w := range shown {
		if strings.EqualFold(bare, w) {
			return 0, 0, false
		}
	}
	if !made(bare) {
		return 0, 0, false
	}
	return from, to, false
}

// unescaped leaves percent escapes out: their digits are no sign of a password.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && alnum[s[i+1]] && alnum[s[i+2]] {
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// made: not a word that an example would use. Passwords of plain words go by; code that
// speaks of addresses is full of those.
func made(s string) bool {
	small, big := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			return true
		case c >= 'a' && c <= 'z':
			small++
		case c >= 'A' && c <= 'Z':
			big++
		}
	}
	return len(s) >= 12 && small > 0 && big > 0
}
