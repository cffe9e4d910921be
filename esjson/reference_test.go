package esjson_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

// tree is a JSON value as the slow reader below sees it. That reader is written from
// the grammar, one byte after the other, so that it shares no trick with the package.
type tree struct {
	kind  esjson.Type
	raw   string
	text  string   // of a string, decoded
	names []string // of an object's members
	parts []tree
}

type slow struct {
	src     string
	at      int
	depth   int
	escaped bool // a \u was read
}

// parse reads a whole text; ok is false for what JSON.parse refuses.
func parse(src []byte) (v tree, escaped, ok bool) {
	p := &slow{src: string(src)}
	defer func() {
		if r := recover(); r != nil {
			if _, mine := r.(refused); !mine {
				panic(r)
			}
			v, escaped, ok = tree{}, false, false
		}
	}()
	p.blanks()
	v = p.value()
	p.blanks()
	return v, p.escaped, p.at == len(p.src)
}

type refused struct{}

func (p *slow) next() byte {
	if p.at == len(p.src) {
		panic(refused{})
	}
	p.at++
	return p.src[p.at-1]
}

func (p *slow) peek() byte {
	if p.at == len(p.src) {
		return 0
	}
	return p.src[p.at]
}

func (p *slow) want(text string) {
	for i := range len(text) {
		if p.next() != text[i] {
			panic(refused{})
		}
	}
}

func (p *slow) blanks() {
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.at]) >= 0 {
		p.at++
	}
}

func (p *slow) value() tree {
	from := p.at
	var v tree
	switch c := p.peek(); {
	case c == '{':
		v = p.container(esjson.TypeObject, '}')
	case c == '[':
		v = p.container(esjson.TypeArray, ']')
	case c == '"':
		v = tree{kind: esjson.TypeString, text: p.text()}
	case c == 't':
		p.want("true")
		v.kind = esjson.TypeBool
	case c == 'f':
		p.want("false")
		v.kind = esjson.TypeBool
	case c == 'n':
		p.want("null")
		v.kind = esjson.TypeNull
	default:
		p.number()
		v.kind = esjson.TypeNumber
	}
	v.raw = p.src[from:p.at]
	return v
}

func (p *slow) container(kind esjson.Type, end byte) tree {
	v := tree{kind: kind}
	if p.depth++; p.depth > 2000 {
		panic(refused{})
	}
	p.next()
	p.blanks()
	if p.peek() == end {
		p.at++
		p.depth--
		return v
	}
	for {
		if kind == esjson.TypeObject {
			v.names = append(v.names, p.text())
			p.blanks()
			p.want(":")
			p.blanks()
		}
		v.parts = append(v.parts, p.value())
		p.blanks()
		switch p.next() {
		case end:
			p.depth--
			return v
		case ',':
			p.blanks()
		default:
			panic(refused{})
		}
	}
}

func (p *slow) number() {
	digits := func() {
		from := p.at
		for p.peek() >= '0' && p.peek() <= '9' {
			p.at++
		}
		if p.at == from {
			panic(refused{})
		}
	}
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else {
		digits()
	}
	if p.peek() == '.' {
		p.at++
		digits()
	}
	if p.peek() == 'e' || p.peek() == 'E' {
		p.at++
		if p.peek() == '+' || p.peek() == '-' {
			p.at++
		}
		digits()
	}
}

// text reads a string as UTF-16 units, which is what a JSON string is made of.
func (p *slow) text() string {
	p.want(`"`)
	var units []rune // pairs are put together as they come
	unit := func(u rune) {
		if n := len(units); n > 0 && u >= 0xDC00 && u < 0xE000 && units[n-1] >= 0xD800 && units[n-1] < 0xDC00 {
			units[n-1] = (units[n-1]-0xD800)<<10 + (u - 0xDC00) + 0x10000
			return
		}
		units = append(units, u)
	}
	for {
		switch c := p.next(); {
		case c == '"':
			var out []byte
			for _, u := range units {
				if u >= 0xD800 && u < 0xE000 {
					out = append(out, 0xE0|byte(u>>12), 0x80|byte(u>>6&0x3F), 0x80|byte(u&0x3F))
				} else {
					out = utf8.AppendRune(out, u)
				}
			}
			return string(out)
		case c < 0x20:
			panic(refused{})
		case c == '\\':
			switch e := p.next(); e {
			case '"', '\\', '/':
				unit(rune(e))
			case 'b', 'f', 'n', 'r', 't':
				unit(rune("\b\f\n\r\t"[strings.IndexByte("bfnrt", e)]))
			case 'u':
				p.escaped = true
				var u rune
				for range 4 {
					d := strings.IndexByte("0123456789abcdef", p.next()|0x20)
					if d < 0 || p.src[p.at-1] < '0' {
						panic(refused{})
					}
					u = u<<4 | rune(d)
				}
				unit(u)
			default:
				panic(refused{})
			}
		default:
			r, n := utf8.DecodeRuneInString(p.src[p.at-1:])
			p.at += n - 1
			unit(r)
		}
	}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// compare holds everything that looks into a text against the slow reader.
func compare(t failer, src []byte) {
	t.Helper()
	want, escaped, ok := parse(src)
	if got := esjson.Valid(src); got != ok {
		if !ok && bytes.Count(src, []byte("["))+bytes.Count(src, []byte("{")) > 1000 {
			return // the slow reader gives up there
		}
		t.Fatalf("Valid(%q) = %v", src, got)
	}
	var x esjson.Index
	for levels := range 4 {
		if got := x.Read(src, levels); got != ok {
			t.Fatalf("Index.Read(%q, %d) = %v", src, levels, got)
		}
		if !ok && (x.Raw(0) != nil || x.Unicode()) {
			t.Fatalf("Index of %q: %q", src, x.Raw(0))
		}
		if ok {
			compareIndex(t, &x, 0, want, levels, escaped)
		}
	}
	if n, whole := esjson.Prefix(append(bytes.Clone(src), ' ')); ok && (!whole || string(bytes.TrimSpace(src[:min(n, len(src))])) != want.raw) {
		t.Fatalf("Prefix(%q) = %d, %v", src, n, whole)
	}
	if ok {
		compareValue(t, bytes.TrimLeft(src, " \t\r\n"), want)
	}
}

func compareValue(t failer, raw []byte, want tree) {
	t.Helper()
	if got := esjson.TypeOf(raw); got != want.kind {
		t.Fatalf("TypeOf(%q) = %v, want %v", raw, got, want.kind)
	}
	if got, err := esjson.Unquote(raw); (err == nil) != (want.kind == esjson.TypeString) || utf8.Valid(raw) && got != want.text {
		t.Fatalf("Unquote(%q) = %q, %v; want %q", raw, got, err, want.text)
	}
	var names []string
	var parts [][]byte
	for name, val := range esjson.Members(raw) {
		names, parts = append(names, name), append(parts, val)
	}
	i := 0
	for name, val := range esjson.Fields(raw) {
		if i >= len(names) || string(name) != names[i] || !bytes.Equal(val, parts[i]) {
			t.Fatalf("Fields and Members of %q differ at %d", raw, i)
		}
		i++
	}
	if want.kind == esjson.TypeArray {
		for val := range esjson.Array(raw) {
			parts = append(parts, val)
		}
	}
	if len(parts) != len(want.parts) || i != len(want.names) {
		t.Fatalf("%q has %d parts and %d names, want %d and %d", raw, len(parts), i, len(want.parts), len(want.names))
	}
	last := map[string]string{}
	for k, part := range parts {
		if string(part) != want.parts[k].raw {
			t.Fatalf("part %d of %q is %q, want %q", k, raw, part, want.parts[k].raw)
		}
		if i > 0 && utf8.Valid(raw) && names[k] != want.names[k] {
			t.Fatalf("name %d of %q is %q, want %q", k, raw, names[k], want.names[k])
		}
		if i > 0 {
			last[names[k]] = want.parts[k].raw
		}
		compareValue(t, part, want.parts[k])
	}
	for name, val := range last {
		if got, ok := esjson.Get(raw, name); !ok || string(got) != val {
			t.Fatalf("Get(%q, %q) = %q, %v; want %q", raw, name, got, ok, val)
		}
	}
	if got, ok := esjson.Get(raw, "no such name"); ok && last["no such name"] == "" {
		t.Fatalf("Get found %q in %q", got, raw)
	}
}

func compareIndex(t failer, x *esjson.Index, i int, want tree, levels int, unicode bool) {
	t.Helper()
	if got := string(x.Raw(i)); got != want.raw || i == 0 && x.Unicode() != unicode {
		t.Fatalf("the index has %q (%v), want %q (%v)", got, x.Unicode(), want.raw, unicode)
	}
	k := 0
	for name, n := range x.Parts(i) {
		if levels == 0 || k >= len(want.parts) {
			t.Fatalf("the index has a part %q too many in %q", x.Raw(n), want.raw)
		}
		if want.kind == esjson.TypeArray && name != nil || want.kind == esjson.TypeObject && utf8.ValidString(want.raw) && string(name) != want.names[k] {
			t.Fatalf("the index calls part %d of %q %q", k, want.raw, name)
		}
		compareIndex(t, x, n, want.parts[k], levels-1, unicode)
		k++
	}
	if levels > 0 && k != len(want.parts) {
		t.Fatalf("the index has %d parts of %q, want %d", k, want.raw, len(want.parts))
	}
}

var genBlank = rapid.SampledFrom([]string{"", "", "", " ", "\n  ", "\t\r"})

var genLiteral = rapid.Custom(func(t *rapid.T) string {
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "text of some length ", `\"`, `\\`, `\\\"`, `\n`, `\u0041`, `\ud83d`, `\ude80`, `\ud83d\ude80`, "é", "🚀", "日本", "\xff", "{", "}", "[", "]", ",", ":", "'", " ", "\u2028", `\/`}), 0, 12).Draw(t, "pieces")
	return `"` + strings.Join(pieces, "") + `"`
})

var genNumber = rapid.OneOf(rapid.SampledFrom([]string{"0", "-0", "1.0", "1e3", "1E+2", "-1.5e-10", "12345678901234567890", "1e400", "0.1", "5e-324"}),
	rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.Int64().Draw(t, "n")) }))

// genJSON makes valid texts of all shapes, with blanks wherever they are allowed.
func genJSON(t *rapid.T, depth int) string {
	blank := func() string { return genBlank.Draw(t, "blank") }
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth == 0 {
		kind = min(kind, 4)
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
	case 1, 2:
		return genNumber.Draw(t, "number")
	case 3, 4:
		return genLiteral.Draw(t, "text")
	}
	var items []string
	for range rapid.IntRange(0, 4).Draw(t, "parts") {
		item := blank() + genJSON(t, depth-1) + blank()
		if kind > 5 {
			item = blank() + genLiteral.Draw(t, "name") + blank() + ":" + item
		}
		items = append(items, item)
	}
	inside := strings.Join(items, ",")
	if inside == "" {
		inside = blank()
	}
	if kind > 5 {
		return "{" + inside + "}"
	}
	return "[" + inside + "]"
}

func TestAgreesWithSlowReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := genBlank.Draw(t, "before") + genJSON(t, 4) + genBlank.Draw(t, "after")
		if !esjson.Valid([]byte(src)) {
			t.Fatalf("%q is refused", src)
		}
		compare(t, []byte(src))
		// Damage: a cut, a byte changed, a byte too many.
		at := rapid.IntRange(0, len(src)-1).Draw(t, "at")
		c := rapid.SampledFrom([]string{"", `"`, `\`, "{", "}", "[", "]", ",", ":", "0", "\n", "\x00", "e", "-", ".", "u"}).Draw(t, "byte")
		compare(t, []byte(src[:at]))
		compare(t, []byte(src[:at]+c+src[at:]))
		compare(t, []byte(src[:at]+c+src[at+1:]))
	})
}

func FuzzSlowReader(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.50,"x\ud800"]}`, `{"\u0061\\":{"":[]}}`, "\"\xff\"", `[1`, `-`, `"\u12`, ` 12 `, `{"a":1,"a":2}`, `"\\\\\\\""`, `[[[[[[]]]]]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) { compare(t, src) })
}
