package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// talk makes messages that look like those of coding agents: prose whose words are as
// unevenly common as a language's, identifiers, paths, files that are read again and
// again, outputs of commands, Chinese. Nothing of it is from anybody's tasks.
type talk struct {
	r      *rand.Rand
	words  []string
	last   int      // the word before
	recent []string // what was said in this task
	names  []string // identifiers
	han    []string
	files  []string
	seen   map[string][]string // of each kind, some that were said
	bytes  int64               // of text that was made, in both histories, without the environment's details
}

func newTalk() *talk {
	t := &talk{seen: map[string][]string{}, r: rand.New(rand.NewPCG(7, 8))}
	for range 30_000 {
		var w strings.Builder
		for range 1 + t.r.IntN(4) {
			w.WriteString(syllables[t.r.IntN(len(syllables))])
		}
		t.words = append(t.words, w.String())
	}
	for range 2000 {
		var w strings.Builder
		for range 1 + t.r.IntN(3) {
			w.WriteRune(rune(0x4e00 + t.r.IntN(3000)))
		}
		t.han = append(t.han, w.String())
	}
	for range 20_000 {
		t.names = append(t.names, t.name())
	}
	for range 3000 {
		t.files = append(t.files, fmt.Sprintf("src/%s/%s_%s.ts", t.words[t.r.IntN(300)], t.word(), t.word()))
	}
	return t
}

var syllables = strings.Fields("a ab ac ad al an ar as at be ca ce co con de di do e ed el en er es ex fa fi for ge ha he i ic in ing is it ity ja ke la le li ly ma me ment mi mo na ne ni no o of on or os ou pa per pre pro qua ra re ri ro sa se sh si so st ta te th ti tion to tr tu un ur us va ve vi wa we wo xy yo ze")

// pick gives one of n, the low ones far more often, as words are in a language.
func (t *talk) pick(n int) int { return int(math.Pow(float64(n), t.r.Float64())) - 1 }

// word follows the word before it as it often does, or is any. The share makes the text
// as repetitive as that of real tasks: zstd takes it to about a third.
func (t *talk) word() string {
	if t.r.IntN(5) > 0 {
		t.last = (t.last*7 + t.pick(8)) % 5000
	} else {
		t.last = t.pick(len(t.words))
	}
	return t.words[t.last]
}

func (t *talk) identifier() string { return t.said("identifier", t.names[t.pick(len(t.names))]) }

func (t *talk) name() string {
	a, b := t.word(), t.word()
	if t.r.IntN(2) == 0 {
		return a + "_" + b
	}
	return a + strings.ToUpper(b[:1]) + b[1:]
}

// said remembers some of what is said, to be looked for.
func (t *talk) said(kind, text string) string {
	if t.r.IntN(300) == 0 {
		t.seen[kind] = append(t.seen[kind], text)
	}
	return text
}

func (t *talk) again(kind string) string {
	if list := t.seen[kind]; len(list) > 0 {
		return list[t.r.IntN(len(list))]
	}
	return t.word()
}

func (t *talk) prose(n int) string {
	var b strings.Builder
	for b.Len() < n {
		if len(t.recent) > 0 && t.r.IntN(6) == 0 {
			b.WriteString(t.recent[t.r.IntN(len(t.recent))]) // a task is about few things
			continue
		}
		switch t.r.IntN(24) {
		case 0:
			b.WriteString(t.identifier())
		case 1:
			b.WriteString(t.said("path", t.files[t.pick(len(t.files))]))
		case 2:
			fmt.Fprintf(&b, "%d", t.r.IntN(5000))
		case 3:
			b.WriteString(t.word() + ".\n")
		case 4:
			if t.r.IntN(8) == 0 {
				for range 3 + t.r.IntN(12) {
					b.WriteString(t.han[t.pick(len(t.han))])
				}
			}
		case 5:
			b.WriteString(t.said("phrase", t.word()+" "+t.word()+" "+t.word()))
		default:
			b.WriteString(t.word())
		}
		b.WriteByte(' ')
	}
	if said := b.String(); t.r.IntN(2) == 0 {
		from := t.r.IntN(len(said))
		t.recent = append(t.recent[max(0, len(t.recent)-30):], strings.ToValidUTF8(said[from:min(len(said), from+100)], "")+" ")
	}
	return b.String()
}

// edited is a file as it is read after a change: a line or two are others.
func (t *talk) edited(file string) string {
	lines := strings.Split(file, "\n")
	for range 2 {
		lines[t.r.IntN(len(lines))] = t.prose(40)
	}
	return strings.Join(lines, "\n")
}

func (t *talk) code(n int) string {
	var b strings.Builder
	for line := 1; b.Len() < n; line++ {
		fmt.Fprintf(&b, "%3d |%s%s := %s.%s(%s, %d)\n", line, strings.Repeat("\t", 1+t.r.IntN(3)), t.word(), t.word(), t.identifier(), t.word(), t.r.IntN(90))
	}
	return b.String()
}

// task makes both histories of one task: as JSON arrays, with n messages together.
func (t *talk) task(ts int64, n int) (ui, api []byte) {
	var u, a [][]byte
	kept := map[string]string{}
	t.recent = nil
	var files []string // that the task is about
	for range 12 {
		files = append(files, t.files[t.pick(len(t.files))])
	}
	add := func(text string) string { t.bytes += int64(len(text)); return text }
	say := func(typ, kind, text string) {
		var o esjson.Object
		o.Int("ts", ts)
		o.String("type", typ)
		o.String(typ, kind)
		o.String("text", text)
		u = append(u, o.Bytes())
	}
	model := func(role string, blocks ...string) {
		var o esjson.Object
		o.String("role", role)
		o.Raw("content", []byte("["+strings.Join(blocks, ",")+"]"))
		o.Int("ts", ts)
		a = append(a, o.Bytes())
	}
	environment := block("text", "text", "<environment_details>\n# VSCode Open Tabs\n"+t.prose(600)+"\n</environment_details>")
	prompt := t.prose(150)
	say("say", "text", add(prompt))
	model("user", block("text", "text", add(prompt)), environment)
	for i := 0; len(u)+len(a) < n; i++ {
		ts += 4000
		id := fmt.Sprintf("toolu_%d", i)
		reply := t.prose(40 + t.r.IntN(400))
		say("say", "text", add(reply))
		if t.r.IntN(3) == 0 {
			command, output := "npm run "+t.word(), t.prose(100+t.r.IntN(1200))
			say("ask", "command", add(command))
			say("say", "command_output", add(output))
			model("assistant", block("text", "text", add(reply)), call(id, "execute_command", "command", add(command)))
			model("user", result(id, "Command executed.\nOutput:\n"+add(output)), environment)
			continue
		}
		path := files[t.pick(len(files))]
		if kept[path] == "" {
			kept[path] = t.code(300 + t.r.IntN(3000))
		} else if t.r.IntN(2) == 0 {
			kept[path] = t.edited(kept[path])
		}
		say("ask", "tool", `{"tool":"readFile","path":`+string(esjson.Quote(nil, add(path)))+`}`)
		model("assistant", block("text", "text", add(reply)), call(id, "read_file", "path", add(path)))
		model("user", result(id, add(kept[path])), environment)
	}
	return array(u), array(a)
}

func array(list [][]byte) []byte {
	out := []byte{'['}
	for i, e := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

func block(typ, key, text string) string {
	var o esjson.Object
	o.String("type", typ)
	o.String(key, text)
	return string(o.Bytes())
}

func call(id, name, key, value string) string {
	var in, o esjson.Object
	in.String(key, value)
	o.String("type", "tool_use")
	o.String("id", id)
	o.String("name", name)
	o.Raw("input", in.Bytes())
	return string(o.Bytes())
}

func result(id, text string) string {
	var o esjson.Object
	o.String("type", "tool_result")
	o.String("tool_use_id", id)
	o.String("content", text)
	return string(o.Bytes())
}
