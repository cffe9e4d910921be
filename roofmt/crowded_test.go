package roofmt

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

// A message of nothing but repeated keys is named and left out, in either history and in one of
// Cline's transcripts; what stands around it is there. Keys below what is looked at, and commas
// in a text, are as many as anybody likes.
func TestAMessageOfTooManyPartsIsLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("writes megabytes, and has one goroutine")
	}
	many := strings.Repeat(`,"a":1`, crowdRoom)
	const left = "a message is left out: it has more parts than one of its length may have"
	for _, c := range []struct{ name, file, middle, problem string }{
		{"members", UIName, `{"ts":2,"type":"say","say":"text"` + many + `}`, left},
		{"of a member", UIName, `{"ts":2,"type":"say","say":"text","x":{"y":1` + many + `}}`, left},
		{"blocks", APIName, `{"role":"user","content":[{}` + strings.Repeat(`,{   }`, crowdRoom) + `]}`, left},
		{"of a block", APIName, `{"role":"user","content":[{"type":"text"` + many + `}]}`, left},
		{"of a tool's input", APIName, `{"role":"user","content":[{"type":"tool_use","input":{"y":1` + many + `}}]}`, ""},
		{"in a text", UIName, `{"ts":2,"type":"say","say":"text","text":"` + strings.ReplaceAll(many, `"`, `\"`) + `"}`, ""},
		{"of a long message", UIName, `{"ts":2,"type":"say","text":"` + strings.Repeat("x", longFrom) + `"` + many[:6*crowdedLong+6] + `}`, left},
		{"of a shorter one", UIName, `{"ts":2,"type":"say","text":"` + strings.Repeat("x", crowdFrom) + `"` + many[:6*crowdedLong+6] + `}`, ""},
		{"in a transcript", TranscriptName("s1"), `{"role":"user","content":[{"type":"text"` + many + `}]}`, left},
	} {
		row := `{"role":"user","content":"words"}`
		if c.file == UIName {
			row = `{"ts":1,"type":"say","say":"text"}`
		}
		text := "[" + row + "," + c.middle + "," + row + "]"
		if c.file == TranscriptName("s1") {
			text = `{"version":1,"messages":` + text + `}`
		}
		dir := filepath.Join(t.TempDir(), "s1")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Read(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		want := 3
		problems := ""
		if c.problem != "" {
			want = 2
		}
		for _, l := range f.Losses {
			problems += l.Problem
		}
		if n := f.UI.Len() + f.API.Len(); n != want || problems != c.problem {
			t.Errorf("%s: %d messages, %+v", c.name, n, f.Losses)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// partsOf counts as an index has them.
func partsOf(x *esjson.Index, i, level int) (n int) {
	if level >= noteLevels {
		return 0
	}
	for _, k := range x.Parts(i) {
		n += 1 + partsOf(x, k, level+1)
	}
	return n
}

// Whatever a text looks like, and wherever it falls apart while it is read, its parts are those
// that an index of it would hold.
func TestPartsAreThoseOfAnIndex(t *testing.T) {
	var value func(depth int) *rapid.Generator[string]
	value = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			word := rapid.SampledFrom([]string{`"a,b"`, `"\\"`, `"\\\",["`, `"}"`, `1`, `null`, `"\"{"`, `""`})
			kind := rapid.IntRange(0, 3).Draw(t, "kind")
			if depth > 5 || kind == 0 {
				return word.Draw(t, "word")
			}
			parts := rapid.SliceOfN(value(depth+1), 1, 4).Draw(t, "parts")
			if kind == 1 {
				return "[" + strings.Join(parts, ", ") + "]"
			}
			for i := range parts {
				parts[i] = word.Filter(func(s string) bool { return s[0] == '"' }).Draw(t, "name") + ":" + parts[i]
			}
			return "{" + strings.Join(parts, ",") + "}"
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		text := value(0).Draw(t, "text")
		var x esjson.Index
		if !x.Read([]byte(text), noteLevels) {
			t.Fatalf("%s is no JSON", text)
		}
		var c crowd
		pieces := iotest.OneByteReader(strings.NewReader(text))
		if size := rapid.IntRange(1, 9).Draw(t, "size"); size > 1 {
			pieces = io.MultiReader(strings.NewReader(text[:min(size, len(text))]), strings.NewReader(text[min(size, len(text)):]))
		}
		buf := make([]byte, 64)
		for {
			n, err := pieces.Read(buf)
			c.feed(buf[:n])
			if err != nil {
				break
			}
		}
		if want := partsOf(&x, 0, 0); c.parts != want || c.depth != 0 || c.inside {
			t.Fatalf("%s: %d parts, want %d", text, c.parts, want)
		}
	})
}

// Long messages are looked at one at a time, in one room, which is given back when nobody
// reads any more.
func TestTheRoomForLongMessagesIsGivenBack(t *testing.T) {
	one, two := reading(), reading()
	file := bytes.NewReader(bytes.Repeat([]byte("0123456789abcdef"), noteRoom/4))
	var rooms []*byte
	for _, e := range []esjson.Element{{Off: 0, Len: noteRoom + 1}, {Off: 3, Len: noteRoom + 9}, {Off: 0, Len: noteRoom}} {
		err := lookAt(file, e, func(raw []byte) {
			if int64(len(raw)) != e.Len || raw[0] != "0123"[e.Off] {
				t.Errorf("%+v: %d bytes, %.5q", e, len(raw), raw)
			}
			rooms = append(rooms, &raw[0])
		})
		if err != nil {
			t.Error(err)
		}
	}
	if rooms[0] != rooms[1] || rooms[1] == rooms[2] {
		t.Error("a room of its own for each, or a short one in the room for long ones")
	}
	if err := lookAt(file, esjson.Element{Off: 5, Len: 4*noteRoom + 1}, func([]byte) { t.Error("shown") }); err == nil {
		t.Error("a message that ends behind the file is read")
	}
	one()
	if large.room == nil {
		t.Error("taken away while somebody reads")
	}
	if two(); large.readers == 0 && large.room != nil {
		t.Error("kept while nobody reads")
	}
}

// What is said of several.
func TestWhatIsSaidOfCrowdedMessages(t *testing.T) {
	for _, c := range []struct {
		o    overlong
		want string
	}{
		{overlong{crowded: 3}, "3 messages are left out: they have more parts than ones of their length may have"},
		{overlong{count: 1, longest: 70 << 20, crowded: 1}, "a message of 70 MB is left out: one may have 64; a message is left out: it has more parts than one of its length may have"},
	} {
		if got := fmt.Sprint(c.o); got != c.want {
			t.Errorf("%q", got)
		}
	}
}
