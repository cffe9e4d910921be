package redact

import "testing"

// Marked names a character that acts or hides at its place. It drops escape sequences, and keeps the characters that join
// letters of other scripts.
func TestMarkedNamesWhatHides(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"plain\ttext\n":          "plain\ttext\n",
		"a\u202eb":               "a⟦U+202E⟧b",
		"zero\u200bwidth":        "zero⟦U+200B⟧width",
		"if\u3164(x)":            "if⟦U+3164⟧(x)", // a letter without a look, which names of variables may hold
		"bell\x07":               "bell⟦U+0007⟧",
		"\x1b[31mred\x1b[0m":     "red",
		"\x1b[?25l\x1b[1;2Hgo":   "go",
		"make\x1b];rm -r ~;\x07": "make⟦U+001B⟧];rm -r ~;⟦U+0007⟧", // a shell runs what a terminal takes for a title
		"a\x1b[;make":            "a⟦U+001B⟧[;make",
		"a\x1bP x\x1b\\":         "a⟦U+001B⟧P x⟦U+001B⟧\\",
		"a\u200db":               "a⟦U+200D⟧b",
		"\u0646\u200c\u0647":     "\u0646\u200c\u0647",
		"one\r\ntwo\rthree":      "one\ntwo\nthree",
		"half \xff":              "half \ufffd",
		"\u2028line\ufeffmark":   "⟦U+2028⟧line⟦U+FEFF⟧mark",
	} {
		if got := Marked(given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
		if got := Marked(Unmarked(want)); got != want {
			t.Errorf("%q, put back and named again: got %q", want, got)
		}
	}
}
