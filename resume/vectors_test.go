package resume

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/contextwindow/rules"
	"github.com/roost-dev/roost/esjson"
)

// vector is one conformance case.
type vector struct {
	name        string
	input, want []byte
}

// each runs every case of a family. check returns whether the case passed, and
// whether it passed by being right where Roo is not.
func each(t *testing.T, family string, check func(t *testing.T, v vector) (ok, byChoice bool)) {
	dir := os.Getenv("ROOST_VECTORS")
	if dir == "" {
		t.Skip("ROOST_VECTORS is not set")
	}
	raw, err := os.ReadFile(filepath.Join(dir, family+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(bytes.NewReader(raw))
	sc.Buffer(nil, 64<<20)
	cases, passed, choices := 0, 0, 0
	for sc.Scan() {
		line := bytes.Clone(sc.Bytes())
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		cases++
		v := vector{}
		v.name, _ = esjson.GetString(line, "name")
		v.input, _ = esjson.Get(line, "input")
		v.want, _ = esjson.Get(line, "want")
		ok, choice := check(t, v)
		if ok {
			passed++
		}
		if choice {
			choices++
		}
	}
	fmt.Printf("vectors: %s %d/%d (by choice %d)\n", family, passed, cases, choices)
	if cases == 0 || passed != cases {
		t.Errorf("%s: %d of %d passed", family, passed, cases)
	}
}

func list(raw []byte) [][]byte {
	var out [][]byte
	for m := range esjson.Array(raw) {
		out = append(out, m)
	}
	return out
}

func same(t *testing.T, v vector, what string, got, want []byte) bool {
	t.Helper()
	if esjson.Equal(got, want) {
		return true
	}
	t.Errorf("%s: %s\n got %.1500s\nwant %.1500s", v.name, what, got, want)
	return false
}

func raw(obj []byte, key string) []byte {
	v, _ := esjson.Get(obj, key)
	return v
}

func replyOf(input []byte) Reply {
	r := raw(input, "response")
	reply := Reply{Kind: member(r, "kind")}
	if text, ok := esjson.GetString(r, "text"); ok {
		reply.Text = &text
	}
	if images, ok := esjson.Get(r, "images"); ok {
		reply.Images = []string{}
		for im := range esjson.Array(images) {
			s, _ := esjson.Unquote(im)
			reply.Images = append(reply.Images, s)
		}
	}
	return reply
}

// markAnswered does what Roo does to older questions and we do not.
func markAnswered(ui [][]byte, kind string) (out [][]byte, marked bool) {
	out = append(out, ui...)
	mark := func(ask string) {
		for i := len(out) - 1; i >= 0; i-- {
			if done, _ := esjson.GetBool(out[i], "isAnswered"); isKind(out[i], "ask", ask) && !done {
				out[i], marked = esjson.Set(out[i], "isAnswered", []byte("true")), true
				return
			}
		}
	}
	mark("followup")
	if kind == Yes {
		mark("tool")
	}
	return out, marked
}

func resultsFirst(content []byte) []byte {
	var results, others [][]byte
	for b := range esjson.Array(content) {
		if member(b, "type") == "tool_result" {
			results = append(results, b)
		} else {
			others = append(others, b)
		}
	}
	return array(append(results, others...))
}

// badRequest: the newest request row is not readable, where Roo stops.
func badRequest(ui [][]byte) bool {
	for i := len(ui) - 1; i >= 0; i-- {
		if isKind(ui[i], "say", "api_req_started") {
			text := []byte(member(ui[i], "text"))
			return len(text) > 0 && (!esjson.Valid(text) || esjson.TypeOf(text) == esjson.TypeNull)
		}
	}
	return false
}

func TestVectorsResume(t *testing.T) {
	each(t, "resume", func(t *testing.T, v vector) (ok, choice bool) {
		ui, api := list(raw(v.input, "ui")), list(raw(v.input, "api"))
		now, _ := esjson.GetInt(v.input, "now")
		at, _ := esjson.GetInt(v.input, "reply_at")
		reply := replyOf(v.input)
		if reply.Kind != Message && reply.said() {
			// Roo drops what came with the button; all else must be as without it.
			choice = true
			with := Make(ui, api, reply, now, at, Options{})
			if len(with.Added) != 2 || reply.Text != nil && *reply.Text != "" && !strings.Contains(string(with.Content), string(replyBlocks(reply.Text, nil)[0])) {
				t.Errorf("%s: the text is lost: %s", v.name, with.Content)
				return false, true
			}
			if !valid(t, v, with, at) {
				return false, true
			}
			reply.Text, reply.Images = nil, nil
		}
		p := Make(ui, api, reply, now, at, Options{})
		ok = valid(t, v, p, at)
		failed, fails := esjson.GetString(v.want, "error")
		if fails {
			why := len(api) == 0 || badRequest(ui) || failed == "bad_last_role" &&
				member(api[len(api)-1], "role") != "user" && member(api[len(api)-1], "role") != "assistant"
			if !why {
				t.Errorf("%s: Roo fails with %s and no rule says why", v.name, failed)
			}
			for _, b := range [][]byte{p.Content} {
				ok = ok && len(b) > 2
			}
			if len(api) == 0 && len(ui) > 0 && member(ui[0], "text") != "" {
				ok = ok && strings.Contains(string(p.Content), string(esjson.Quote(nil, "<user_message>\n"+member(ui[0], "text")+"\n</user_message>")))
			}
			if !ok {
				t.Errorf("%s: %s", v.name, p.Content)
			}
			return ok && why, true
		}
		ask, _ := esjson.GetString(v.want, "ask")
		if ask != p.Ask {
			t.Errorf("%s: asks %s, want %s", v.name, p.Ask, ask)
			ok = false
		}
		marked, quirk := markAnswered(p.UI(), reply.Kind)
		if quirk && !esjson.Equal(array(p.UI()), raw(v.want, "ui")) {
			choice = true
			ok = same(t, v, "ui", array(marked), raw(v.want, "ui")) && ok
		} else {
			ok = same(t, v, "ui", array(p.UI()), raw(v.want, "ui")) && ok
		}
		ok = same(t, v, "api", array(p.API()), raw(v.want, "api")) && ok
		content, after := raw(v.want, "new_user_content"), list(raw(v.want, "api_after_append"))
		got := p.Append(p.Content, at+5)
		if !esjson.Equal(p.Content, content) {
			choice = true
			content = resultsFirst(content)
		}
		ok = same(t, v, "content", p.Content, content) && ok
		if !esjson.Equal(array(got), array(after)) && len(after) > 0 {
			choice = true
			last := after[len(after)-1]
			after[len(after)-1] = esjson.Set(last, "content", resultsFirst(raw(last, "content")))
		}
		ok = same(t, v, "append", array(got), array(after)) && ok
		return ok, choice
	})
}

func valid(t *testing.T, v vector, p Plan, at int64) bool {
	built, _, err := contextwindow.Build(p.Append(p.Content, at), contextwindow.Options{})
	if err == nil {
		err = rules.Validate(built)
	}
	if err != nil {
		t.Errorf("%s: %v", v.name, err)
	}
	return err == nil
}
