package redact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// fake makes a body of n bytes; keys are put together here so that no scanner
// takes this file for a leak.
func fake(a *alphabet, n int) string {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	var b strings.Builder
	for b.Len() < n {
		if c := byte(rng.IntN(128)); a[c] && c != '-' && c != '.' && c != '/' && c != '=' && c != '+' {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// sample is a secret of a rule's kind, with what must stand in front.
func sample(r rule) string {
	lead := ""
	if r.behind != nil {
		lead = fake(r.behind, 1)
	}
	return lead + r.keyword + fake(r.body, r.min)
}

func secrets() map[string]string {
	all := map[string]string{
		"a jwt":          "eyJ" + fake(word, 20) + "." + "eyJ" + fake(word, 60) + "." + fake(word, 43),
		"an aws secret":  "aws_secret_access_key = " + fake(base64s, 40),
		"a bearer":       "Bearer " + fake(bearers, 40),
		"a url":          "postgres://app:" + fake(alnum, 20) + "@db.internal:5432/x",
		"a private key":  "-----BEGIN RSA PRIVATE" + " KEY-----\n" + strings.Repeat(fake(alnum, 64)+"\n", 25) + "-----END RSA PRIVATE KEY-----",
		"a key in json":  `"-----BEGIN PRIVATE` + ` KEY-----\n` + strings.Repeat(fake(alnum, 64)+`\n`, 25) + `-----END PRIVATE KEY-----\n"`,
		"half of a key":  "-----BEGIN OPENSSH PRIVATE" + " KEY-----\n" + strings.Repeat(fake(alnum, 70)+"\n", 5),
		"a known value":  "my own token value",
		"a known prefix": "my own token value, longer",
	}
	for name, text := range logins() {
		all["the login of "+name] = text
	}
	for _, r := range rules {
		if r.body != nil {
			all[r.kind+" "+r.keyword] = sample(r)
		}
	}
	return all
}

func redactor() *Redactor {
	return New(Known{"mine", "my own token value"}, Known{"longer", "my own token value, longer"}, Known{"short", "abc"}, Known{"", "unnamed-key-value"})
}

func TestEveryKindIsMasked(t *testing.T) {
	r := redactor()
	if len(r.rules) < 50 {
		t.Errorf("only %d rules", len(r.rules))
	}
	for name, s := range secrets() {
		for _, around := range [][2]string{{"", ""}, {"key=", "\n"}, {"\"", "\","}, {"a ", " b"}, {"(", ")"}} {
			text := around[0] + s + around[1]
			got, n := r.String(text)
			if n != 1 || !strings.Contains(got, "[REDACTED:") || !strings.HasPrefix(got, around[0]) || !strings.HasSuffix(got, around[1]) && name != "half of a key" {
				t.Errorf("%s in %q: %d masked: %q", name, around, n, got)
			}
			if again, m := r.String(got); m != 0 || again != got {
				t.Errorf("%s: masking twice gives %q", name, again)
			}
		}
	}
	for in, want := range map[string]string{
		"my own token value, longer!":                          "[REDACTED:longer]!",
		"unnamed-key-value":                                    "[REDACTED:key]",
		"https://u:" + "s3cret-Value" + "@h/p":                 "https://u:[REDACTED:url-password]@h/p",
		"Authorization: Bearer " + fake(alnum, 30) + " x":      "Authorization: Bearer [REDACTED:bearer-token] x",
		"x sk-ant-" + "api03-" + fake(alnum, 40) + " y sk-ant": "x [REDACTED:anthropic-key] y sk-ant",
	} {
		if got, _ := r.String(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	r := redactor()
	for _, s := range []string{
		"", "abc", "sk-", "sk-ant-", "sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-your-key-here", "task-" + strings.Repeat("abcdefgh1", 5), "AKIAIOSFODNN7EXAMPLE", "risk_test_" + fake(alnum, 30),
		"https://example.com:8080/a@b", "https://user:password@host", "https://u:$PASS@h", "https://u:${PASS}@h", "http://localhost:3000", "git@github.com:a/b.git", "a://b:c", "https://u:****@h",
		"Bearer token", "bearer of bad news from somewhere far away", "Bearer <your-token-goes-here-please>", "eyJhbGciOiJIUzI1NiJ9", "eyJabcdefghijk.notjson",
		`strings.Contains(s, "-----BEGIN PRIVATE KEY-----")`, "-----BEGIN CERTIFICATE-----\n" + strings.Repeat(fake(alnum, 64)+"\n", 20) + "-----END CERTIFICATE-----",
		"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----", "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904", "sha256:" + fake(hex, 64), "ghp_short", "hf_model_name_of_something_long", "AIzaShort",
	} {
		if got, n := r.String(s); n != 0 || got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// The pieces in which a text comes must not matter, and little may be held back.
func TestStreamEqualsWhole(t *testing.T) {
	r := redactor()
	var list []string
	for _, s := range secrets() {
		list = append(list, s)
	}
	list = append(list, "plain text\n", " ", "://", "sk-", "-----BEGIN ", "eyJ", "é", "my own token valu", "https://u:")
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(list)-1), 0, 6).Draw(t, "pieces") {
			s := list[i]
			text.WriteString(s[:rapid.IntRange(len(s)/2, len(s)).Draw(t, "cut")])
			text.WriteString(rapid.SampledFrom([]string{"", " ", "\n", "_", "*", "a"}).Draw(t, "gap"))
		}
		s := text.String()
		want, count := r.String(s)
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := s; rest != ""; {
			n := min(rapid.SampledFrom([]int{1, 2, 7, 100, 5000}).Draw(t, "n"), len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want || w.Count() != count {
			t.Fatalf("in pieces:\n%q (%d)\nwhole:\n%q (%d)", out.String(), w.Count(), want, count)
		}
	})
}

func TestLittleIsHeldBack(t *testing.T) {
	w := redactor().Writer(&bytes.Buffer{})
	line := []byte("an ordinary line of output, with https://example.com/path in it\n")
	for range 1000 {
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
		if len(w.held) > 256 {
			t.Fatalf("%d bytes are held back", len(w.held))
		}
	}
	endless := []byte("-----BEGIN RSA PRIVATE" + " KEY-----\n" + strings.Repeat("QUJDREVGR0g1MjM0", 4) + "\n")
	for range 10000 {
		if _, err := w.Write(endless[:64]); err != nil {
			t.Fatal(err)
		}
		if len(w.held) > maxKey+1024 {
			t.Fatalf("%d bytes are held back", len(w.held))
		}
	}
}

func TestTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n", "\x1b[31mred\x1b[0m": "red", "\x1b]0;title\x07x": "x", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link", "\x1b]52;c;aGk=\nnext": "\nnext",
		"a\r\nb": "a\nb", "safe\rrm": "safe\nrm", "a\bb\x00c\x7f": "abc", "\u202eabc\u2066": "abc", "\u009b31mx": "31mx", "\xff\xfe": "\ufffd\ufffd", "日本 é 👩\u200d💻": "日本 é 👩\u200d💻", "\x1bPq#0\x1b\\x": "x",
		"\x1b": "", "\x1b[": "", "\x1b(Bx": "x", "\x1bcx": "x", "a\u200bb\ufeffc": "abc", "x\u2028y": "xy", "\xed\xa0\x80": "\ufffd\ufffd\ufffd",
	} {
		if got := Terminal(in); got != want {
			t.Errorf("Terminal(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzTerminal(f *testing.F) {
	f.Add("\x1b]0;x\x07\x1b[3\x1b\x9b\u202e\r")
	f.Fuzz(func(t *testing.T, s string) {
		got := Terminal(s)
		if !utf8.ValidString(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		for _, r := range got {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Fatalf("%q holds %U", got, r)
			}
		}
		if Terminal(got) != got {
			t.Fatalf("not stable: %q", got)
		}
	})
}

func FuzzStream(f *testing.F) {
	f.Add("x sk-ant-abcdefghij0123456789abc https://u:p4ssw0rd@h -----BEGIN PRIVATE KEY-----", 3)
	r := redactor()
	f.Fuzz(func(t *testing.T, s string, n int) {
		want, _ := r.String(s)
		var out bytes.Buffer
		w := r.Writer(&out)
		n = n&63 + 1
		for rest := s; rest != ""; {
			k := min(n, len(rest))
			_, _ = w.Write([]byte(rest[:k]))
			rest = rest[k:]
		}
		_ = w.Close()
		if out.String() != want {
			t.Fatalf("in pieces %q, whole %q", out.String(), want)
		}
	})
}

// BenchmarkString reads this package's own source, over and over.
func BenchmarkString(b *testing.B) {
	var src []byte
	for _, f := range []string{"redact.go", "rule.go"} {
		data, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		src = append(src, data...)
	}
	text := string(bytes.Repeat(src, 1+(4<<20)/len(src)))
	r := New(Known{"mine", "my own token value"})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, n := r.String(text); n != 0 {
			b.Fatal("a secret in the source")
		}
	}
}

func ExampleRedactor_String() {
	r := New(Known{Kind: "anthropic-key", Value: "the value of the key"})
	text, n := r.String("export KEY='the value of the key'")
	fmt.Println(text, n)
	// Output: export KEY='[REDACTED:anthropic-key]' 1
}

// TestWhole cuts a text behind words and where Whole says: each piece is masked for itself, and nothing of a secret shows.
func TestWhole(t *testing.T) {
	t.Parallel()
	r := New(Known{Value: "a-known-token-value-1"})
	for name, secret := range secrets() {
		if strings.HasPrefix(name, "a known") {
			continue // not of this redactor
		}
		text := "first words, then " + secret + " and more\nwords: a-known-token-value-1 https://example.org/x ends\n"
		want, _ := r.String(text)
		got, held := "", ""
		for i := range len(text) {
			held += text[i : i+1]
			cut := r.Whole(held[:strings.LastIndexAny(held, " \t\r\n")+1])
			masked, _ := r.String(held[:cut])
			got, held = got+masked, held[cut:]
		}
		last, _ := r.String(held)
		if got += last; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
