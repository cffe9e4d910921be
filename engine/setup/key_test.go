package setup

import (
	"strings"
	"testing"
)

func TestKeyDoubt(t *testing.T) {
	const body = "0123456789abcdefghijklmnopqrstuvwxyz"
	for _, c := range []struct{ provider, key, want string }{
		{"anthropic", "sk-ant-api03-" + body, ""},
		{"anthropic", "sk-" + body, "begin with sk-ant-"},
		{"anthropic", "sk-ant-x", "are longer"},
		{"openai", "sk-proj-" + body, ""},
		{"openai", "sk-ant-api03-" + body, "looks like a key of anthropic"},
		{"openai", "AIza" + body, "looks like a key of google"},
		{"google", "AIza" + body, ""},
		{"google", "AQ." + body, ""},
		{"google", "sk-" + body, "begin with AIza or AQ."},
		{"openai-compatible", "anything", ""},
	} {
		got := KeyDoubt(c.provider, c.key)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(got, body) {
			t.Errorf("%s %s: got %q, want %q and no key in it", c.provider, c.key, got, c.want)
		}
	}
}
