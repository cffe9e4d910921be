package esjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// In words or byte by byte, a string is the same string.
func TestAStringInWordsIsTheString(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"", "a", "plain words ", "éü", "日本語", "\xff", "/", "}",
		`\n`, `\"`, `\\`, `\\\`, `\/`, `\b`, `\f`, `\r`, `\t`, `\u0041`, `\x`, `\`, `"`, "\n", "\x00", "\x1f", "\x7f",
		strings.Repeat("x", 31), strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat(`\`, 63), strings.Repeat(`\`, 64),
	})
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), ""))
		checkRun(t, text)
	})
}

// Every byte at every place of a word, alone and behind rows of backslashes.
func TestAWordStopsAtTheRightByte(t *testing.T) {
	for c := range 256 {
		for at := range 130 {
			for row := range min(at, 4) + 1 {
				text := bytes.Repeat([]byte{'x'}, 200)
				copy(text[at-row:], strings.Repeat(`\`, row))
				text[at] = byte(c)
				checkRun(t, text)
			}
		}
	}
}

// Nothing behind the text is read.
func TestAWordEndsWithItsText(t *testing.T) {
	whole := bytes.Repeat([]byte{'x'}, 400)
	for n := range 200 {
		for _, behind := range []byte{'x', '"', '\\', 'n'} {
			for i := n; i < len(whole); i++ {
				whole[i] = behind
			}
			for _, end := range []byte{'x', '\\'} {
				if n > 0 {
					whole[n-1] = end
				}
				checkRun(t, whole[:n])
			}
			for i := range whole {
				whole[i] = 'x'
			}
		}
	}
}

func FuzzStringRun(f *testing.F) {
	f.Add([]byte(strings.Repeat(`if err != nil {\n\treturn fmt.Errorf(\"a %w\", err)\n}\n`, 5) + `","b":1`))
	f.Add([]byte(strings.Repeat(`\\`, 100) + `"`))
	f.Fuzz(func(t *testing.T, text []byte) { checkRun(t, text) })
}

// checkRun compares with the plain reading of the rules, one byte at a time.
func checkRun(t interface {
	Helper()
	Fatalf(string, ...any)
}, text []byte) {
	t.Helper()
	want := 0
	for want < len(text) {
		c := text[want]
		if c == '\\' && want+1 < len(text) && strings.IndexByte(`"\/bfnrt`, text[want+1]) >= 0 {
			want += 2
			continue
		}
		if c == '\\' || c == '"' || c < 0x20 {
			break
		}
		want++
	}
	if n := stringRun(text); n != want {
		t.Fatalf("stringRun(%q) is %d, want %d", text, n, want)
	}
}

func BenchmarkStringRun(b *testing.B) {
	for name, text := range map[string]string{
		"prose": strings.Repeat("some words that need nothing ", 400),
		"code":  strings.Repeat(`\tif err := s.handle(ctx, \"value\"); err != nil { return err }\n`, 200),
	} {
		p := []byte(text + `"`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				if stringRun(p) != len(text) {
					b.Fatal("stopped early")
				}
			}
		})
	}
}

// Taking ASCII eight bytes at a time gives what decoding character by character gives, at any alignment and behind anything.
func TestUnquotingInWords(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"", "a", "bc", "words", "eight by", "longer than eight bytes ", "é", "日本", "\U0001F680", "\x7f",
		`\n`, `\"`, `\\`, `\/`, `\b`, `\f`, `\r`, `\t`, `\u0041`, `\u00e9`, `\ud83d\ude80`,
	})
	rapid.Check(t, func(t *rapid.T) {
		lit := []byte(`"` + strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "") + `"`)
		var want string
		if err := json.Unmarshal(lit, &want); err != nil {
			t.Fatal(err)
		}
		got, err := Unquote(lit)
		if err != nil || got != want {
			t.Fatalf("%s: %q %v, want %q", lit, got, err, want)
		}
		if got, err := Unquote(lit[:len(lit)-1]); err == nil || got != "" {
			t.Fatalf("%s without its end: got %q %v, want an error", lit, got, err)
		}
	})
}
