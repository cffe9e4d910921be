package resume

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/contextwindow/rules"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
)

func replyOf(input conformance.Value) Reply {
	r := input.Get("response")
	reply := Reply{Kind: r.Str("kind")}
	if text, ok := esjson.GetString(r, "text"); ok {
		reply.Text = &text
	}
	if r.Has("images") {
		reply.Images = append([]string{}, r.Get("images").Strings()...)
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
	conformance.Run(t, "resume", func(t *testing.T, c conformance.Case) (choice bool) {
		ui, api := c.Input.Get("ui").List(), c.Input.Get("api").List()
		now, at := c.Input.Int("now", 0), c.Input.Int("reply_at", 0)
		reply := replyOf(c.Input)
		if reply.Kind != Message && reply.said() {
			// Roo drops what came with the button; all else must be as without it.
			choice = true
			with := Make(ui, api, reply, now, at, Options{})
			if len(with.Added) != 2 || reply.Text != nil && *reply.Text != "" && !strings.Contains(string(with.Content), string(replyBlocks(reply.Text, nil)[0])) {
				t.Fatalf("the text is lost: %s", with.Content)
			}
			valid(t, with, at)
			reply.Text, reply.Images = nil, nil
		}
		p := Make(ui, api, reply, now, at, Options{})
		valid(t, p, at)
		if c.Want.Has("error") {
			whereRooFails(t, c.Want.Str("error"), ui, api, p)
			return true
		}
		if ask := c.Want.Str("ask"); ask != p.Ask {
			t.Errorf("asks %s, want %s", p.Ask, ask)
		}
		wantUI := c.Want.Get("ui")
		marked, quirk := markAnswered(p.UI(), reply.Kind)
		if quirk && !esjson.Equal(array(p.UI()), wantUI) {
			choice = true
			c.Same(t, "ui", array(marked), wantUI)
		} else {
			c.Same(t, "ui", array(p.UI()), wantUI)
		}
		c.Same(t, "api", array(p.API()), c.Want.Get("api"))
		content, after := c.Want.Get("new_user_content"), c.Want.Get("api_after_append").List()
		got := p.Append(p.Content, at+5)
		if !esjson.Equal(p.Content, content) {
			choice = true
			content = resultsFirst(content)
		}
		c.Same(t, "content", p.Content, content)
		if !esjson.Equal(array(got), array(after)) && len(after) > 0 {
			choice = true
			last := after[len(after)-1]
			after[len(after)-1] = esjson.Set(last, "content", resultsFirst(conformance.Value(last).Get("content")))
		}
		c.Same(t, "append", array(got), array(after))
		return choice
	})
}

// whereRooFails: a rule says why it does, and here the task goes on with what
// there is.
func whereRooFails(t *testing.T, failed string, ui, api [][]byte, p Plan) {
	why := len(api) == 0 || badRequest(ui) || failed == "bad_last_role" &&
		member(api[len(api)-1], "role") != "user" && member(api[len(api)-1], "role") != "assistant"
	if !why {
		t.Errorf("Roo fails with %s and no rule says why", failed)
	}
	ok := len(p.Content) > 2
	if len(api) == 0 && len(ui) > 0 && member(ui[0], "text") != "" {
		ok = ok && strings.Contains(string(p.Content), string(esjson.Quote(nil, "<user_message>\n"+member(ui[0], "text")+"\n</user_message>")))
	}
	if !ok {
		t.Errorf("%s", p.Content)
	}
}

// valid: the first request after resuming is one that the API takes.
func valid(t *testing.T, p Plan, at int64) {
	t.Helper()
	built, _, err := contextwindow.Build(p.Append(p.Content, at), contextwindow.Options{})
	if err == nil {
		err = rules.Validate(built)
	}
	if err != nil {
		t.Fatal(err)
	}
}
