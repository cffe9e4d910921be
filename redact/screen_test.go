package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

const hostile = "a\x1b]52;c;eA==\x07b\x1b]0;t\x07\u009b31mc\x7f\u202ed\u2066e\U000E0041f\x1bPq\x1b\\g\u65e5\u00e9\x9bh"

// Whatever pieces a text comes in, the terminal gets the same.
func TestScreenInPieces(t *testing.T) {
	text := hostile + "\n" + hostile + "\nend " + hostile
	data, err := json.Marshal(map[string]string{"x": hostile, "y": "z"})
	if err != nil {
		t.Fatal(err)
	}
	for size := 1; size < 60; size++ {
		var lines, doc strings.Builder
		plain, object := TerminalText(&lines), TerminalJSON(&doc)
		for from := 0; from < len(text); from += size {
			_, _ = plain.Write([]byte(text[from:min(from+size, len(text))]))
		}
		for from := 0; from < len(data); from += size {
			_, _ = object.Write(data[from:min(from+size, len(data))])
		}
		if plain.Close() != nil || object.Close() != nil {
			t.Fatal("close")
		}
		if want := Terminal(text); lines.String() != want {
			t.Fatalf("in pieces of %d:\n got %q\nwant %q", size, lines.String(), want)
		}
		var back map[string]string
		if err := json.Unmarshal([]byte(doc.String()), &back); err != nil || back["x"] != strings.ToValidUTF8(hostile, "\ufffd") || back["y"] != "z" {
			t.Fatalf("in pieces of %d: %v, %q", size, err, doc.String())
		}
		if strings.ContainsAny(doc.String(), "\x1b\x07\x7f\u009b\u202e\u2066\U000E0041") || !strings.Contains(doc.String(), "\u65e5\u00e9") {
			t.Fatalf("in pieces of %d: %q", size, doc.String())
		}
	}
}
