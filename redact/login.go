package redact

import (
	"encoding/base64"
	"strings"
)

// follows wants a value right behind the keyword, perhaps in quotes, and masks it alone.
func follows(body *alphabet, least, most int) func(string, int, bool) (int, int, bool) {
	quote := letters("\"'")
	return func(s string, at int, final bool) (int, int, bool) {
		q, more := run(s, at, quote, 1, final)
		if more {
			return 0, 0, true
		}
		n, more := run(s, at+q, body, most+1, final)
		if more || n < least || n > most || !random(s[at+q:at+q+n]) {
			return 0, 0, more
		}
		return at + q, at + q + n, false
	}
}

// secretive reports whether a password looks like a real one, and not like a word, a variable or a mask.
func secretive(value string) bool {
	if len(value) < 6 || strings.ContainsAny(value[:1], "$%*<{[(") || strings.Trim(value, "*x.X") == "" {
		return false
	}
	for _, w := range shown {
		if strings.EqualFold(value, w) {
			return false
		}
	}
	return made(value)
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
	if strings.ContainsAny(value, "()[]{}<>") || !secretive(value) { // a call, or what stands for a value
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
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return 0, 0, false
		}
	}
	_, secret, ok := strings.Cut(string(text), ":")
	if !ok || !secretive(secret) {
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
		if value = strings.TrimRight(value, " "); ok && login(name) && len(value) >= 16 && random(value) {
			if from == 0 {
				from = start + len(name) + 1
			}
			to = start + len(name) + 1 + len(value)
		}
		start, rest = start+len(rest)-len(behind), behind
	}
	return from, to, false
}

// login reports whether a cookie of this name stands for a log-in.
func login(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, part := range []string{"sess", "auth", "token", "jwt"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "sid")
}
